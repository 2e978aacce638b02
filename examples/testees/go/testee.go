// Testee of generated Go bindings, in the folder of the packages that these commands write:
//
//	mcp-bindgen generate --language go --out FOLDER
//	mcp-bindgen generate 2026-07-28 --extension tasks --language go --out FOLDER
//
// and the same for the extensions skills and apps. FOLDER is the module "testee".
package main

import (
	"bufio"
	"encoding/json"
	"os"

	"testee/mcp20241105"
	"testee/mcp20250326"
	"testee/mcp20250618"
	"testee/mcp20251125"
	"testee/mcp20260728"
	"testee/mcp20260728apps"
	"testee/mcp20260728skills"
	"testee/mcp20260728tasks"
)

var packages = map[string]func(definition string) any{
	"2024-11-05": mcp20241105.New,
	"2025-03-26": mcp20250326.New,
	"2025-06-18": mcp20250618.New,
	"2025-11-25": mcp20251125.New,
	"2026-07-28": mcp20260728.New,
	"io.modelcontextprotocol/skills@2026-07-28": mcp20260728skills.New,
	"io.modelcontextprotocol/tasks@2026-07-28":  mcp20260728tasks.New,
	"io.modelcontextprotocol/ui@2026-01-26":     mcp20260728apps.New,
}

type message struct {
	Cmd        string `json:"cmd"`
	Seq        int    `json:"seq"`
	Revision   string `json:"revision"`
	Extension  string `json:"extension"`
	Definition string `json:"definition"`
	Text       string `json:"text"`
}

// answer reads and writes a document, and returns the kind of the answer with its text.
func answer(in message) (string, string) {
	name := in.Revision
	if in.Extension != "" {
		name = in.Extension
	}
	newValue, ok := packages[name]
	if !ok {
		return "unsupported", name
	}
	value := newValue(in.Definition)
	if value == nil {
		return "unsupported", in.Definition
	}
	if err := json.Unmarshal([]byte(in.Text), value); err != nil {
		return "rejected", err.Error()
	}
	text, err := json.Marshal(value)
	if err != nil {
		return "error", err.Error()
	}
	return "accepted", string(text)
}

func main() {
	version := "unknown"
	if len(os.Args) > 1 {
		version = os.Args[1]
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 10_000_000)
	out := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var in message
		if err := json.Unmarshal(lines.Bytes(), &in); err != nil || in.Cmd == "stop" {
			return
		}
		reply := map[string]any{"seq": in.Seq}
		if in.Cmd == "start" {
			reply = map[string]any{"protocol": 1, "name": "mcp-bindgen (Go)", "version": version, "language": "go"}
			reply["revisions"] = []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"}
		} else {
			kind, text := answer(in)
			reply[kind] = text
		}
		if out.Encode(reply) != nil {
			return
		}
	}
}
