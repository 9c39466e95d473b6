package operate

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/internal/cli/console"
)

// HookCommand groups the commands for hooks, which start and signal tasks from outside.
type HookCommand struct {
	Set    hookSetCmd    `cmd:"" help:"Create or change a hook."`
	List   hookListCmd   `cmd:"" help:"List hooks."`
	Show   hookShowCmd   `cmd:"" help:"Show a hook without its secret."`
	Delete hookDeleteCmd `cmd:"" help:"Delete hooks."`
}

type hookListCmd struct {
	console.RemoteFlags
	console.PagingFlags
}

func (c *hookListCmd) Run(ctx context.Context, a *console.App) error {
	server, err := c.NewClient()
	if err != nil {
		return err
	}
	hooks, err := console.ReadPage(c.PagingFlags, func(p client.Paging) (*wire.Page[wire.Hook], error) { return server.Hooks(ctx, p) })
	if err != nil {
		return err
	}
	t := console.Table{Header: []string{"HOOK", "STATE", "SCHEME", "EFFECT", "UPDATED"}, Spare: []string{"UPDATED", "SCHEME"}}
	return console.PrintPage(a, c.OutputFlag, hooks, t, func(h *wire.Hook) []string {
		return []string{h.Name, stateOfHook(h), cmp.Or(h.Scheme, "standard"), DescribeHook(h), console.FormatTime(h.UpdatedAt)}
	})
}

func stateOfHook(h *wire.Hook) string {
	if h.Disabled {
		return "disabled"
	}
	return "enabled"
}

// DescribeHook describes the effect of deliveries in a few words.
func DescribeHook(h *wire.Hook) string {
	switch {
	case h.Signal == "":
		return "starts " + h.Flow
	case h.Task != "":
		return "signals " + h.Signal + " to " + h.Task
	}
	return "signals " + h.Signal + " to the task of " + h.Flow + " with " + h.Key
}

type hookShowCmd struct {
	console.RemoteFlags
	Hook string `arg:"" complete:"hook" help:"Hook name."`
}

func (c *hookShowCmd) Run(ctx context.Context, a *console.App) error {
	server, err := c.NewClient()
	if err != nil {
		return err
	}
	h, err := server.Hook(ctx, c.Hook)
	switch {
	case err != nil:
		return err
	case c.IsJSON():
		return console.PrintJSON(a.Stdout, h)
	}
	return printHook(a, h, "")
}

// printHook prints a hook, and its secret if the secret was just generated.
func printHook(a *console.App, h *wire.Hook, secret string) error {
	labels := []string{}
	for _, name := range sortedKeys(h.Labels) {
		labels = append(labels, name+"="+h.Labels[name])
	}
	return console.PrintFields(a.Stdout, "Hook", h.Name, "State", stateOfHook(h), "Path", h.Path, "Scheme",
		cmp.Or(h.Scheme, "standard"), "Header", h.Header,
		"Effect", DescribeHook(h), "Condition", h.When, "Key", h.Key, "Params", string(h.Params), "Value",
		string(h.Value), "Labels", strings.Join(labels, ", "),
		"Old secret valid until", momentOrNone(h.OldSecretUntil), "Updated", console.FormatTime(h.UpdatedAt), "Secret", secret)
}

func momentOrNone(t wire.Time) string {
	if t.IsZero() {
		return ""
	}
	return console.FormatTime(t)
}

type hookDeleteCmd struct {
	console.RemoteFlags
	Hooks []string `arg:"" name:"hook" complete:"hook" help:"Hook names."`
}

func (c *hookDeleteCmd) Run(ctx context.Context, a *console.App) error {
	server, err := c.NewClient()
	if err != nil {
		return err
	}
	for _, name := range c.Hooks {
		deleted, err := server.DeleteHook(ctx, name)
		switch {
		case err != nil:
			return err
		case c.IsJSON():
			err = console.PrintLine(a.Stdout, deleted)
		default:
			_, err = fmt.Fprintf(a.Stdout, "%s deleted\n", console.SanitizeText(deleted.Name))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
