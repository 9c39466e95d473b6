package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow/define"
)

type hookSetCmd struct {
	remoteFlags
	Hook       string            `arg:"" complete:"hook" help:"Name of the hook."`
	File       string            `arg:"" optional:"" help:"Its settings in YAML or JSON; - is stdin. Or else the flags say them. Without any it keeps those it has."`
	Flow       string            `complete:"flow" help:"The flow that is started; of a signal with --key: that of the task."`
	Params     string            `placeholder:"EXPR" help:"What it is started with: an expression over body, headers, query, delivery and hook, or JSON in which every text is one. Default: the body."`
	Param      map[string]string `short:"p" placeholder:"NAME=EXPR" mapsep:"none" help:"One of the params. May be repeated."`
	Label      map[string]string `placeholder:"NAME=EXPR" mapsep:"none" help:"A label of the task. May be repeated."`
	Key        string            `placeholder:"EXPR" help:"The key of the start: deliveries with the same one are the same task. Of a signal: that with which its task was started."`
	When       string            `placeholder:"EXPR" help:"Which deliveries are carried out; others are passed over."`
	Signal     string            `placeholder:"KEY" help:"Signal a task: the key that is set."`
	Task       string            `placeholder:"EXPR" help:"Id of the task that is signaled."`
	Value      string            `placeholder:"EXPR" help:"What the signal sets its key to, as --params. Default: the body."`
	Scheme     string            `enum:"standard,github,stripe," default:"" help:"How deliveries are signed: standard (Standard Webhooks), github or stripe."`
	Header     string            `help:"The header of the signature, where another one than the scheme's has it."`
	SecretFile string            `placeholder:"FILE" help:"A file with the secret that deliveries are signed with; - is stdin. Of a new hook one is made, and shown this once."`
	NewSecret  bool              `help:"Have a new secret made, and show it this once."`
	Keep       time.Duration     `default:"0s" help:"How long the secret before a new one stays valid beside it, such as 24h."`
	Disable    bool              `xor:"able" help:"Have its deliveries refused."`
	Enable     bool              `xor:"able" help:"Have them carried out again."`
}

// Help shows examples.
func (hookSetCmd) Help() string {
	return `Examples:

    troupe hook set orders --flow order -p order=body.id -p source='headers["x-source"]' --key body.id
    troupe hook set paid --signal paid --flow order --key body.order --value body.amount
    troupe hook set orders --new-secret --keep 24h`
}

func (c *hookSetCmd) Run(ctx context.Context, a *app) error {
	server, err := c.newClient()
	if err != nil {
		return err
	}
	set, err := c.desiredHook(ctx, a, server)
	if err != nil {
		return err
	}
	done, err := server.SetHook(ctx, c.Hook, *set)
	switch {
	case err != nil:
		return err
	case c.isJSON():
		return printJSON(a.stdout, done)
	}
	if err := printHook(a, &done.Hook, done.Secret); err != nil || done.Secret == "" {
		return err
	}
	fmt.Fprintln(a.stderr, "The secret is shown this once: give it to whoever delivers.")
	return nil
}

// desiredHook returns the new settings of the hook: those of the command line, and for the rest its
// current ones.
func (c *hookSetCmd) desiredHook(ctx context.Context, a *app, server *client.Client) (*wire.SetHook, error) {
	set := &wire.SetHook{NewSecret: c.NewSecret, KeepMS: c.Keep.Milliseconds()}
	before, err := server.Hook(ctx, c.Hook)
	if refused := (*client.Error)(nil); err != nil && !(errors.As(err, &refused) && refused.Status == http.StatusNotFound) {
		return nil, err
	}
	if before != nil {
		set.HookSettings, set.Disabled, set.Revision = before.HookSettings, before.Disabled, before.Revision
	}
	said, given, err := c.readSettings(a)
	if err != nil {
		return nil, err
	}
	if given {
		set.HookSettings = *said
	}
	set.Disabled = set.Disabled && !c.Enable || c.Disable
	if c.SecretFile != "" {
		text, err := a.readFile(c.SecretFile)
		if err != nil {
			return nil, err
		}
		if set.Secret = strings.TrimSpace(string(text)); set.Secret == "" {
			return nil, newUsageError("%s holds no secret", c.SecretFile)
		}
	}
	return set, nil
}

// readSettings returns the settings in the file or in the flags.
func (c *hookSetCmd) readSettings(a *app) (said *wire.HookSettings, given bool, err error) {
	flags, err := c.flagSettings()
	if err != nil {
		return nil, false, err
	}
	given = !isZero(flags)
	switch {
	case c.File == "":
		return flags, given, nil
	case given:
		return nil, false, newUsageError("either the file or flags say what the hook does")
	}
	text, err := a.readFile(c.File)
	if err != nil {
		return nil, false, err
	}
	said, err = readSettings(text)
	if err != nil {
		return nil, false, subjectError{c.File, err}
	}
	return said, true, nil
}

func (c *hookSetCmd) flagSettings() (*wire.HookSettings, error) {
	s := &wire.HookSettings{Scheme: c.Scheme, Header: c.Header, When: c.When, Flow: c.Flow,
		Key: c.Key, Labels: c.Label, Signal: c.Signal, Task: c.Task,
		Params: templateOf(c.Params), Value: templateOf(c.Value)}
	if len(c.Param) == 0 {
		return s, nil
	}
	if len(s.Params) > 0 {
		return nil, newUsageError("either --params or -p say what the flow is started with")
	}
	var err error
	s.Params, err = plainJSON(c.Param)
	return s, err
}

// plainJSON encodes a value without escaping < and &, which expressions contain.
func plainJSON(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	err := encodeJSON(&b, v, "")
	return bytes.TrimSpace(b.Bytes()), err
}

// templateOf returns JSON unchanged, and any other text as an expression.
func templateOf(text string) json.RawMessage {
	if text == "" {
		return nil
	}
	if text[0] == '{' || text[0] == '[' {
		if json.Valid([]byte(text)) {
			return json.RawMessage(text)
		}
	}
	quoted, _ := plainJSON(text) // a text can always be encoded
	return quoted
}

func isZero(s *wire.HookSettings) bool {
	text, err := json.Marshal(s)
	return err == nil && string(text) == "{}"
}

// readSettings parses YAML, which includes JSON.
func readSettings(text []byte) (*wire.HookSettings, error) {
	plain, err := define.YAMLToJSON(text) // keeps all digits of numbers
	if err != nil {
		return nil, err
	}
	var s wire.HookSettings
	d := json.NewDecoder(bytes.NewReader(plain))
	d.DisallowUnknownFields()
	return &s, d.Decode(&s)
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
