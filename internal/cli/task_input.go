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

// inputFlags say what a task is started with.
type inputFlags struct {
	Input      string   `placeholder:"JSON|@FILE" help:"Input, any JSON that the flow takes; @FILE reads it from a file, @- from stdin."`
	Params     string   `placeholder:"JSON" help:"Params, a JSON object."`
	ParamsFile string   `placeholder:"FILE" help:"File with the params; - is stdin."`
	Param      []string `short:"p" sep:"none" complete:"input" placeholder:"KEY=VALUE" help:"One of the params: of the type that the flow declares for it, else JSON, or else text. KEY:=JSON is JSON in any case. May be repeated."`
	Label      []string `sep:"none" placeholder:"NAME=TEXT" help:"Mark the task, to find it again. May be repeated."`
}

// hasInput reports whether there is something to start a task with.
func (f *inputFlags) hasInput() bool {
	return f.Input != "" || f.Params != "" || f.ParamsFile != "" || len(f.Param) > 0
}

// inputsLookup finds what a flow declares that it takes. It is asked only when that makes a
// difference.
type inputsLookup func() (*types.Inputs, error)

// buildStart makes the request that begins a task.
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

// startLabels are those of the flags, and by whom the task was started.
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

// inputHint says in flags what a server that was given no fitting input says in fields.
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

// buildParams puts together what the flags say; single ones win over an object.
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
		return text, nil // as it is, with its order of keys
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

// parseParam reads one -p. What is written KEY:=JSON has its colon at the end of the key.
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

// declaredBy asks a server what a version of a flow declares.
func declaredBy(ctx context.Context, server *client.Client, flow string, version int) inputsLookup {
	return func() (*types.Inputs, error) {
		v, err := server.Version(ctx, flow, version)
		if err != nil || len(v.Inputs) == 0 {
			return nil, err
		}
		in, _ := types.Read(v.Inputs) // it says what is wrong with a task all the same
		return in, nil
	}
}

// declaredIn reads what a definition declares. What is wrong with it the server tells.
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

// readJSONValue is JSON that a flag says, or the file it names.
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

// parsePairs reads the values of a flag that are written NAME=VALUE.
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

// jsonOrText takes what is JSON for what it is, and all else for text.
func jsonOrText(s string) json.RawMessage {
	if json.Valid([]byte(s)) {
		return json.RawMessage(s)
	}
	text, _ := json.Marshal(s) // a string is always marshaled
	return text
}
