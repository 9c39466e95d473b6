package tasks

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/flow/types"
	"github.com/troupe-engine/troupe/internal/cli/console"
)

// ParamFlags holds the params of a task. The flags mean the same for all commands. Omitted params
// come from the old task or from the schedule, if there is one.
type ParamFlags struct {
	ParamsFile string   `placeholder:"FILE" help:"File with params as JSON; - is stdin."`
	Param      []string `short:"p" sep:"none" complete:"input" placeholder:"KEY=VALUE" help:"Param with the type that the flow declares; otherwise JSON, or else a string. KEY:=JSON is always JSON. Repeatable."`

	file json.RawMessage // content of ParamsFile, which can be read only once from stdin
}

// hasParams reports whether any params were given.
func (f *ParamFlags) hasParams() bool { return f.ParamsFile != "" || len(f.Param) > 0 }

// InputsLookup returns the declared inputs of a flow. It is called only if a param needs their
// types.
type InputsLookup func() (*types.Inputs, error)

// ReadFile returns the content of the params file; nil means that the flag is not set.
func (f *ParamFlags) ReadFile(a *console.App) (json.RawMessage, error) {
	if f.ParamsFile == "" || f.file != nil {
		return f.file, nil
	}
	text, err := a.ReadFile(f.ParamsFile)
	if err != nil {
		return nil, err
	}
	if !json.Valid(text) {
		return nil, console.NewUsageError("--params-file %s is not valid JSON", f.ParamsFile)
	}
	f.file = text
	return text, nil
}

// BuildParams returns the params of the file, or else the old params, changed by each -p. Without a
// -p the text stays unchanged, with its order of keys.
func (f *ParamFlags) BuildParams(a *console.App, old json.RawMessage, takes InputsLookup) (json.RawMessage, error) {
	text, err := f.ReadFile(a)
	if err != nil || len(f.Param) == 0 {
		return text, err
	}
	if text == nil {
		text = old
	}
	object := map[string]json.RawMessage{}
	if len(text) > 0 {
		if err := json.Unmarshal(text, &object); err != nil || object == nil { // null is no object
			return nil, console.NewUsageError("-p needs params that are a JSON object: replace them with --params-file")
		}
	}
	single, err := parsePairs("-p", f.Param)
	if err != nil {
		return nil, err
	}
	in, err := takes()
	if err != nil {
		return nil, err
	}
	for key, value := range single {
		name, v, err := parseParam(in, key, value)
		if err != nil {
			return nil, err
		}
		object[name] = v
	}
	return json.Marshal(object)
}

// parseParam parses one -p. In KEY:=JSON the key ends with a colon.
func parseParam(in *types.Inputs, key, value string) (name string, v json.RawMessage, err error) {
	name, isJSON := strings.CutSuffix(key, ":")
	switch {
	case !isJSON || name == "":
		return key, in.Text(key, value), nil
	case !json.Valid([]byte(value)):
		return name, nil, console.NewUsageError(
			"-p %s:=%.60s is not valid JSON: quote strings, or write %s=%.60s", name, value, name, value)
	}
	return name, json.RawMessage(value), nil
}

// NewInputsLookup returns a lookup that reads the inputs of a flow's version from a server; version
// 0 means the newest.
func NewInputsLookup(ctx context.Context, server *client.Client, flow string, version int) InputsLookup {
	return func() (*types.Inputs, error) {
		v, err := server.Version(ctx, flow, version)
		if err != nil || len(v.Inputs) == 0 {
			return nil, err
		}
		in, _ := types.Read(v.Inputs) // the server reports faults of the inputs anyway
		return in, nil
	}
}

// NewDeclaredLookup returns a lookup that reads the inputs of a definition. The server reports
// faults of the definition.
func NewDeclaredLookup(text []byte) InputsLookup {
	return func() (*types.Inputs, error) {
		d, _ := definition.Parse(text)
		if d == nil {
			return nil, nil
		}
		in, _ := d.Inputs.Read()
		return in, nil
	}
}
