"""Commands for servers that exist: contracts, calls, logins, locks, recordings and configurations of hosts."""

from mcp_bindgen.cli.table import Command

COMMANDS = (
    Command("contract", "Build servers and clients", "mcp_bindgen.commands.contract"),
    Command("client", "Build servers and clients", "mcp_bindgen.commands.client"),
    Command("dev", "Build servers and clients", "mcp_bindgen.commands.dev"),
    Command("call", "Talk to servers", "mcp_bindgen.commands.call"),
    Command("gateway", "Talk to servers", "mcp_bindgen.commands.gateway", is_open=True),
    Command("lock", "Talk to servers", "mcp_bindgen.commands.lock"),
    Command("mock", "Talk to servers", "mcp_bindgen.commands.mock", is_open=True),
    Command("tap", "Talk to servers", "mcp_bindgen.commands.tap"),
    Command("login", "Talk to servers", "mcp_bindgen.commands.logins"),
    Command("logout", "Talk to servers", "mcp_bindgen.commands.logins"),
    Command("auth", "Talk to servers", "mcp_bindgen.commands.logins"),
    Command("install", "Maintain", "mcp_bindgen.commands.install"),
    Command("uninstall", "Maintain", "mcp_bindgen.commands.install"),
)
"""Object of the entry point `mcp_bindgen.commands`."""
