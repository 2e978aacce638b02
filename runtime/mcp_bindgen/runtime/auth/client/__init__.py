"""The client's side of authorization: find out who issues tokens, get them, keep them, and send them.

`metadata`, `clients`, `registration`, `request` and `grants` say what is sent and what an answer means, and do no I/O.
`discovery`, `token_endpoint`, `login` and `authorizer` drive them; users name what is in `oauth`, `machines`, `bearer`.
"""
