// An authorization server on this machine, for tests: node authorization_server.mjs PORT
//
// It is oidc-provider with what MCP wants of one. Tokens for http://127.0.0.1:*/opaque are opaque, all others are JWTs of
// the type at+jwt. The environment may have NONCES=1, then every proof of possession needs a nonce, and DOCUMENTS, JSON
// with the metadata documents of clients by their URL, which are on no server. With DEVICE=0 no other device can log in.
import { randomBytes } from 'node:crypto';

import Provider from 'oidc-provider';

const port = Number(process.argv[2]);
const documents = JSON.parse(process.env.DOCUMENTS ?? '{}');
const scopes = ['mcp:read', 'mcp:write', 'mcp:admin'];
const machine = {
  client_secret: 'a secret of the machine that nobody guesses',
  grant_types: ['client_credentials'],
  redirect_uris: [],
  response_types: [],
  scope: scopes.join(' '),
};

const provider = new Provider(`http://127.0.0.1:${port}`, {
  scopes: ['openid', 'offline_access', ...scopes],
  clients: [
    { ...machine, client_id: 'machine' },
    { ...machine, client_id: 'poster', token_endpoint_auth_method: 'client_secret_post' },
    { ...machine, client_id: 'prover', dpop_bound_access_tokens: true },
    { ...machine, client_id: 'resource', grant_types: [], scope: undefined },
    {
      client_id: 'desk',
      client_secret: machine.client_secret,
      application_type: 'native',
      grant_types: ['authorization_code', 'refresh_token'],
      redirect_uris: ['http://localhost:8099/callback'],
    },
  ],
  features: {
    clientCredentials: { enabled: true },
    clientIdMetadataDocument: { enabled: true, ack: 'draft-02' },
    deviceFlow: { enabled: process.env.DEVICE !== '0' },
    devInteractions: { enabled: true },
    dPoP: {
      enabled: true,
      nonceSecret: randomBytes(32),
      requireNonce: () => process.env.NONCES === '1',
    },
    introspection: { enabled: true, allowedPolicy: () => true },
    registration: { enabled: true },
    revocation: { enabled: true },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: (ctx, resource) => ({
        scope: scopes.join(' '),
        audience: resource,
        accessTokenTTL: 600,
        accessTokenFormat: resource.endsWith('/opaque') ? 'opaque' : 'jwt',
        jwt: { sign: { alg: 'RS256' } },
      }),
    },
  },
  fetch: async (url) => {
    const document = documents[String(url)];
    return new Response(JSON.stringify(document), { status: document ? 200 : 404 });
  },
  ttl: { ClientCredentials: 600 },
});

provider.listen(port, '127.0.0.1');
