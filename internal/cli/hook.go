package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
)

// hookCmd groups the commands for hooks, which start and signal tasks from outside.
type hookCmd struct {
	Set    hookSetCmd    `cmd:"" help:"Make a hook, or change it."`
	List   hookListCmd   `cmd:"" help:"List the hooks."`
	Show   hookShowCmd   `cmd:"" help:"Show a hook; its secret is shown to nobody."`
	Delete hookDeleteCmd `cmd:"" help:"Delete hooks."`
}

type hookListCmd struct {
	remoteFlags
	pagingFlags
}

func (c *hookListCmd) Run(ctx context.Context, a *app) error {
	server, err := c.newClient()
	if err != nil {
		return err
	}
	hooks, err := readPage(c.pagingFlags, func(p client.Paging) (*wire.Page[wire.Hook], error) { return server.Hooks(ctx, p) })
	if err != nil {
		return err
	}
	t := table{header: []string{"HOOK", "STATE", "SCHEME", "DOES", "CHANGED"}, spare: []string{"CHANGED", "SCHEME"}}
	return printPage(a, c.outputFlag, hooks, t, func(h *wire.Hook) []string {
		return []string{h.Name, stateOfHook(h), orElse(h.Scheme, "standard"), doesHook(h), formatTime(h.UpdatedAt)}
	})
}

func stateOfHook(h *wire.Hook) string {
	if h.Disabled {
		return "disabled"
	}
	return "enabled"
}

// doesHook describes the effect of deliveries in short.
func doesHook(h *wire.Hook) string {
	switch {
	case h.Signal == "":
		return "starts " + h.Flow
	case h.Task != "":
		return "signals " + h.Signal + " to " + h.Task
	}
	return "signals " + h.Signal + " to the task of " + h.Flow + " with " + h.Key
}

type hookShowCmd struct {
	remoteFlags
	Hook string `arg:"" complete:"hook" help:"Name of the hook."`
}

func (c *hookShowCmd) Run(ctx context.Context, a *app) error {
	server, err := c.newClient()
	if err != nil {
		return err
	}
	h, err := server.Hook(ctx, c.Hook)
	switch {
	case err != nil:
		return err
	case c.isJSON():
		return printJSON(a.stdout, h)
	}
	return printHook(a, h, "")
}

// printHook prints a hook, and its secret if that was just generated.
func printHook(a *app, h *wire.Hook, secret string) error {
	labels := []string{}
	for _, name := range sortedKeys(h.Labels) {
		labels = append(labels, name+"="+h.Labels[name])
	}
	return printFields(a.stdout, "Hook", h.Name, "State", stateOfHook(h), "Path", h.Path, "Scheme",
		orElse(h.Scheme, "standard"), "Header", h.Header,
		"Does", doesHook(h), "When", h.When, "Key", h.Key, "Params", string(h.Params), "Value",
		string(h.Value), "Labels", strings.Join(labels, ", "),
		"Old secret until", momentOrNone(h.OldSecretUntil), "Changed", formatTime(h.UpdatedAt), "Secret", secret)
}

func momentOrNone(t wire.Time) string {
	if t.IsZero() {
		return ""
	}
	return formatTime(t)
}

type hookDeleteCmd struct {
	remoteFlags
	Hooks []string `arg:"" name:"hook" complete:"hook" help:"Names of the hooks."`
}

func (c *hookDeleteCmd) Run(ctx context.Context, a *app) error {
	server, err := c.newClient()
	if err != nil {
		return err
	}
	for _, name := range c.Hooks {
		deleted, err := server.DeleteHook(ctx, name)
		switch {
		case err != nil:
			return err
		case c.isJSON():
			err = printLine(a.stdout, deleted)
		default:
			_, err = fmt.Fprintf(a.stdout, "%s is deleted\n", sanitizeText(deleted.Name))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
