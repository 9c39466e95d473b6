package operate

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
	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/internal/cli/console"
)

type hookSetCmd struct {
	console.RemoteFlags
	Hook         string            `arg:"" complete:"hook" help:"Hook name."`
	File         string            `arg:"" optional:"" help:"Settings in YAML or JSON, instead of flags; - is stdin. Without settings, the hook keeps its own."`
	Flow         string            `complete:"flow" help:"Flow to start. With --signal and --key: the flow of the task."`
	Params       string            `placeholder:"EXPR" help:"Params of the task: an expression over body, headers, query, delivery and hook, or JSON whose strings are expressions. Default: the body."`
	Map          map[string]string `placeholder:"NAME=EXPR" mapsep:"none" help:"One param of the task, instead of --params. Repeatable."`
	Label        map[string]string `placeholder:"NAME=EXPR" mapsep:"none" help:"Label of the task. Repeatable."`
	Key          string            `placeholder:"EXPR" help:"Idempotency key: deliveries with the same key give the same task. With --signal: the key of the task to signal."`
	When         string            `placeholder:"EXPR" help:"Condition: other deliveries are ignored."`
	Signal       string            `placeholder:"KEY" help:"Signal a task: the key of shared to set."`
	Task         string            `placeholder:"EXPR" help:"ID of the task to signal."`
	Value        string            `placeholder:"EXPR" help:"Value of the signal, written like --params. Default: the body."`
	Scheme       string            `enum:"standard,github,stripe," default:"" help:"Signature scheme: standard (Standard Webhooks), github or stripe."`
	Header       string            `help:"Header with the signature, if not the scheme's own."`
	SecretFile   string            `placeholder:"FILE" help:"File with the signing secret; - is stdin. A new hook without one gets a generated secret, shown only once."`
	NewSecret    bool              `help:"Generate a new secret and show it once."`
	OldSecretTTL time.Duration     `name:"old-secret-ttl" default:"0s" help:"Time that the previous secret stays valid, such as 24h."`
	Disable      bool              `xor:"able" help:"Reject deliveries."`
	Enable       bool              `xor:"able" help:"Accept deliveries again."`
}

// Help shows examples of hooks.
func (hookSetCmd) Help() string {
	return `Examples:

    troupe hook set orders --flow order --map order=body.id --map source='headers["x-source"]' --key body.id
    troupe hook set paid --signal paid --flow order --key body.order --value body.amount
    troupe hook set orders --new-secret --old-secret-ttl 24h`
}

func (c *hookSetCmd) Run(ctx context.Context, a *console.App) error {
	server, err := c.NewClient()
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
	case c.IsJSON():
		return console.PrintJSON(a.Stdout, done)
	}
	if err := printHook(a, &done.Hook, done.Secret); err != nil || done.Secret == "" {
		return err
	}
	fmt.Fprintln(a.Stderr, "Store the secret now: it is not shown again. Give it to the sender.")
	return nil
}

// desiredHook returns the new settings of the hook: the settings of the command line, and for the
// rest the current ones.
func (c *hookSetCmd) desiredHook(ctx context.Context, a *console.App, server *client.Client) (*wire.HookSettings, error) {
	set := &wire.HookSettings{NewSecret: c.NewSecret, OldSecretTTLMS: c.OldSecretTTL.Milliseconds()}
	before, err := server.Hook(ctx, c.Hook)
	if refused := (*client.Error)(nil); err != nil && !(errors.As(err, &refused) && refused.Status == http.StatusNotFound) {
		return nil, err
	}
	if before != nil {
		set.HookSpec, set.Disabled, set.Revision = before.HookSpec, before.Disabled, before.Revision
	}
	said, given, err := c.readSettings(a)
	if err != nil {
		return nil, err
	}
	if given {
		set.HookSpec = *said
	}
	set.Disabled = set.Disabled && !c.Enable || c.Disable
	if c.SecretFile != "" {
		text, err := a.ReadFile(c.SecretFile)
		if err != nil {
			return nil, err
		}
		if set.Secret = strings.TrimSpace(string(text)); set.Secret == "" {
			return nil, console.NewUsageError("%s contains no secret", c.SecretFile)
		}
	}
	return set, nil
}

// readSettings returns the settings in the file or in the flags.
func (c *hookSetCmd) readSettings(a *console.App) (said *wire.HookSpec, given bool, err error) {
	flags, err := c.flagSettings()
	if err != nil {
		return nil, false, err
	}
	given = !isZero(flags)
	switch {
	case c.File == "":
		return flags, given, nil
	case given:
		return nil, false, console.NewUsageError("give either a settings file or flags")
	}
	text, err := a.ReadFile(c.File)
	if err != nil {
		return nil, false, err
	}
	said, err = readSettings(text)
	if err != nil {
		return nil, false, console.SubjectError{Subject: c.File, Err: err}
	}
	return said, true, nil
}

func (c *hookSetCmd) flagSettings() (*wire.HookSpec, error) {
	s := &wire.HookSpec{Scheme: c.Scheme, Header: c.Header, When: c.When, Flow: c.Flow,
		Key: c.Key, Labels: c.Label, Signal: c.Signal, Task: c.Task,
		Params: templateOf(c.Params), Value: templateOf(c.Value)}
	if len(c.Map) == 0 {
		return s, nil
	}
	if len(s.Params) > 0 {
		return nil, console.NewUsageError("give either --params or --map")
	}
	var err error
	s.Params, err = plainJSON(c.Map)
	return s, err
}

// plainJSON encodes a value without escaping < and &, which expressions contain.
func plainJSON(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	err := console.EncodeJSON(&b, v, "")
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

func isZero(s *wire.HookSpec) bool {
	text, err := json.Marshal(s)
	return err == nil && string(text) == "{}"
}

// readSettings parses YAML, which includes JSON.
func readSettings(text []byte) (*wire.HookSpec, error) {
	plain, err := definition.YAMLToJSON(text) // keeps all digits of numbers
	if err != nil {
		return nil, err
	}
	var s wire.HookSpec
	d := json.NewDecoder(bytes.NewReader(plain))
	d.DisallowUnknownFields()
	return &s, d.Decode(&s)
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
