package cli

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow/define"
	"github.com/troupe-engine/troupe/flow/schedule"
	"github.com/troupe-engine/troupe/flow/types"
)

// inputFlags holds the inputs with which a task is started.
type inputFlags struct {
	Input      string   `placeholder:"JSON|@FILE" help:"Input, any JSON that the flow takes; @FILE reads it from a file, @- from stdin."`
	Params     string   `placeholder:"JSON" help:"Params, a JSON object."`
	ParamsFile string   `placeholder:"FILE" help:"File with the params; - is stdin."`
	Param      []string `short:"p" sep:"none" complete:"input" placeholder:"KEY=VALUE" help:"One of the params: of the type that the flow declares for it, else JSON, or else text. KEY:=JSON is JSON in any case. May be repeated."`
	Label      []string `sep:"none" placeholder:"NAME=TEXT" help:"Mark the task, to find it again. May be repeated."`
}

// hasInput reports whether any input was given.
func (f *inputFlags) hasInput() bool {
	return f.Input != "" || f.Params != "" || f.ParamsFile != "" || len(f.Param) > 0
}

// inputsLookup returns the declared inputs of a flow. It is called only if they matter.
type inputsLookup func() (*types.Inputs, error)

// buildStart returns the request that starts a task.
func (f *inputFlags) buildStart(a *app, flow string, takes inputsLookup) (s wire.Start, err error) {
	s.Flow = flow
	if s.Labels, err = f.startLabels(); err != nil {
		return s, err
	}
	if f.Input == "" {
		s.Params, err = f.buildParams(a, takes)
		return s, err
	}
	if f.Params != "" || f.ParamsFile != "" || len(f.Param) > 0 {
		return s, newUsageError("--input is all a task is started with: leave --params, --params-file and -p out")
	}
	s.Input, err = a.readJSONValue("--input", f.Input)
	return s, err
}

// startLabels returns the labels of the flags, and the label for the user who started the task.
func (f *inputFlags) startLabels() (map[string]string, error) {
	labels, err := parsePairs("--label", f.Label)
	if _, told := labels[schedule.LabelBy]; !told && err == nil {
		if labels == nil {
			labels = map[string]string{}
		}
		labels[schedule.LabelBy] = schedule.ByCommand
	}
	return labels, err
}

// inputHint translates a server's error about inputs from fields to flags.
func inputHint(flow string, err error) error {
	var refused *client.Error
	if !errors.As(err, &refused) || refused.Where != "body.input" && refused.Where != "body.params" {
		return err
	}
	switch refused.Status {
	case http.StatusUnprocessableEntity:
		if len(refused.Faults) > 0 {
			refused.Where, refused.Hint = "", "troupe flow show "+flow+" tells what it takes"
		}
	case http.StatusBadRequest:
		refused.Where = ""
		refused.Hint = `say what the task is started with: --input '["a", "b"]', --input @FILE, or -p KEY=VALUE for an object`
	}
	return err
}

// buildParams returns the params from the flags; single values override those of an object.
func (f *inputFlags) buildParams(a *app, takes inputsLookup) (json.RawMessage, error) {
	text := []byte(f.Params)
	if f.ParamsFile != "" {
		if f.Params != "" {
			return nil, newUsageError("--params and --params-file are two ways to say the same: choose one")
		}
		var err error
		if text, err = a.readFile(f.ParamsFile); err != nil {
			return nil, err
		}
	}
	var object map[string]json.RawMessage
	if len(text) > 0 {
		if err := json.Unmarshal(text, &object); err != nil {
			return nil, newUsageError("params are no JSON object: %v (for any other JSON use --input)", err)
		}
	}
	if len(f.Param) == 0 {
		return text, nil // unchanged, with its order of keys
	}
	single, err := parsePairs("-p", f.Param)
	if err != nil {
		return nil, err
	}
	if object == nil {
		object = map[string]json.RawMessage{}
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
		return name, nil, newUsageError("-p %s:=%.60s is no JSON: quote texts, or write %s=%.60s", name, value, name, value)
	}
	return name, json.RawMessage(value), nil
}

// declaredBy returns a lookup that reads the inputs of a flow's version from a server.
func declaredBy(ctx context.Context, server *client.Client, flow string, version int) inputsLookup {
	return func() (*types.Inputs, error) {
		v, err := server.Version(ctx, flow, version)
		if err != nil || len(v.Inputs) == 0 {
			return nil, err
		}
		in, _ := types.Read(v.Inputs) // the server reports faults of the inputs anyway
		return in, nil
	}
}

// declaredIn returns a lookup that reads the inputs of a definition. The server reports faults of
// the definition.
func declaredIn(text []byte) inputsLookup {
	return func() (*types.Inputs, error) {
		d, _ := define.Parse(text)
		if d == nil {
			return nil, nil
		}
		in, _ := d.Inputs.Read()
		return in, nil
	}
}

// readJSONValue returns the JSON of a flag, or of the file that it names.
func (a *app) readJSONValue(flag, sent string) (json.RawMessage, error) {
	text := []byte(sent)
	if file, ok := strings.CutPrefix(sent, "@"); ok {
		var err error
		if text, err = a.readFile(file); err != nil {
			return nil, err
		}
	}
	if !json.Valid(text) {
		return nil, newUsageError("%s %.60q is no JSON: quote texts, or name a file as @FILE", flag, sent)
	}
	return text, nil
}

// parsePairs parses the values NAME=VALUE of a flag.
func parsePairs(flag string, sent []string) (map[string]string, error) {
	if len(sent) == 0 {
		return nil, nil
	}
	all := map[string]string{}
	for _, pair := range sent {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return nil, newUsageError("%s %q is not NAME=VALUE", flag, pair)
		}
		all[name] = value
	}
	return all, nil
}

// jsonOrText returns valid JSON unchanged, and any other text as a JSON string.
func jsonOrText(s string) json.RawMessage {
	if json.Valid([]byte(s)) {
		return json.RawMessage(s)
	}
	text, _ := json.Marshal(s) // a string can always be marshaled
	return text
}
