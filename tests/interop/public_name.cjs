// Preloaded (`node --require`): resolves the name in PUBLIC_NAME to this machine.

const dns = require("dns");
const resolve = dns.lookup;

dns.lookup = (host, ...rest) => resolve(host === process.env.PUBLIC_NAME ? "127.0.0.1" : host, ...rest);
