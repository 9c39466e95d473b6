package tasks

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow/schedule"
	"github.com/troupe-engine/troupe/internal/cli/console"
)

// InputFlags holds the flags for the input of a new task.
type InputFlags struct {
	Input string `placeholder:"JSON|@FILE" help:"Input: any JSON. @FILE reads a file, @- reads stdin."`
	ParamFlags
	Label []string `sep:"none" placeholder:"NAME=TEXT" help:"Label of the task. Repeatable."`
}

// hasInput reports whether any input was given.
func (f *InputFlags) hasInput() bool { return f.Input != "" || f.hasParams() }

// BuildStart returns the request that starts a task.
func (f *InputFlags) BuildStart(a *console.App, flow string, takes InputsLookup) (s wire.StartRequest, err error) {
	s.Flow = flow
	if s.Labels, err = f.startLabels(); err != nil {
		return s, err
	}
	if f.Input == "" {
		s.Params, err = f.BuildParams(a, nil, takes)
		return s, checkObject(s.Params, err)
	}
	if f.hasParams() {
		return s, console.NewUsageError("--input cannot be combined with --params-file or -p")
	}
	s.Input, err = readJSONValue(a, "--input", f.Input)
	return s, err
}

// startLabels returns the labels of the flags, and the label for the user who started the task.
func (f *InputFlags) startLabels() (map[string]string, error) {
	labels, err := parsePairs("--label", f.Label)
	if _, told := labels[schedule.LabelBy]; !told && err == nil {
		if labels == nil {
			labels = map[string]string{}
		}
		labels[schedule.LabelBy] = schedule.ByCommand
	}
	return labels, err
}

// AddInputHint translates a server's error about inputs from fields to flags.
func AddInputHint(flow string, err error) error {
	var refused *client.Error
	if !errors.As(err, &refused) || refused.Field != "body.input" && refused.Field != "body.params" {
		return err
	}
	switch refused.Status {
	case http.StatusUnprocessableEntity:
		if len(refused.Errors) > 0 {
			refused.Field, refused.Hint = "", "troupe flow show "+flow+" lists its inputs"
		}
	case http.StatusBadRequest:
		refused.Field = ""
		refused.Hint = `use --input '["a", "b"]', --input @FILE, or -p KEY=VALUE for an object`
	}
	return err
}

// checkObject returns err, or an error about params that are not a JSON object.
func checkObject(params json.RawMessage, err error) error {
	if err != nil || len(params) == 0 {
		return err
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(params, &object); err != nil {
		return console.NewUsageError("params must be a JSON object: %v (use --input for other JSON)", err)
	}
	return nil
}

// readJSONValue returns the JSON of a flag, or of the file that it names.
func readJSONValue(a *console.App, flag, sent string) (json.RawMessage, error) {
	text := []byte(sent)
	if file, ok := strings.CutPrefix(sent, "@"); ok {
		var err error
		if text, err = a.ReadFile(file); err != nil {
			return nil, err
		}
	}
	if !json.Valid(text) {
		return nil, console.NewUsageError("%s %.60q is not valid JSON: quote strings, or use @FILE", flag, sent)
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
			return nil, console.NewUsageError("%s %q: use NAME=VALUE", flag, pair)
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
