"""Answer over stdio from an asyncio loop that reads lines: json.loads and json.dumps, one write an answer, no checks."""

import asyncio
import json
import sys

from bare_loop import answer


async def main() -> None:
    """Answer each line of stdin until its end."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=1 << 20)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, sys.stdout)
    writer = asyncio.StreamWriter(transport, protocol, None, loop)
    while line := await reader.readline():
        said = answer(json.loads(line))
        if said:
            writer.write(said.encode())
            await writer.drain()


if __name__ == "__main__":
    asyncio.run(main())
