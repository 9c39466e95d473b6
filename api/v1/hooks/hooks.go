// Package hooks serves hooks, and the signed deliveries that start or signal tasks.
package hooks

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"regexp"
	"strings"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/v1/catalog"
	"github.com/troupe-engine/troupe/api/v1/route"
	"github.com/troupe-engine/troupe/api/v1/tasks"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/hook"
	"github.com/troupe-engine/troupe/internal/bounded"
	"github.com/troupe-engine/troupe/persistence"
)

// This file has the routes that manage hooks. Deliveries are in deliver.go.

// Handler serves hooks and the deliveries to them.
type Handler struct {
	Router  *route.Router
	Catalog *catalog.Flows

	Store    api.Store
	Reader   api.Reader
	Engine   engine.Engine
	Logger   *slog.Logger
	hooks    compiledHooks
	refusals bounded.Once // logged reasons of rejected deliveries
}

// AddRoutes adds the routes of the handler.
func (hh *Handler) AddRoutes(rt *route.Router) {
	route.Register(rt, route.Operation{ID: "list-hooks", Method: http.MethodGet, Path: "/v1/hooks", Tag: "hooks",
		Summary: "List hooks",
		Text:    "In order of name."}, hh.listHooks)
	route.Register(rt, route.Operation{ID: "get-hook", Method: http.MethodGet, Path: "/v1/hooks/{hook}", Tag: "hooks",
		Summary: "Get a hook without its secret"}, hh.getHook)
	route.Register(rt, route.Operation{ID: "set-hook", Method: http.MethodPut, Path: "/v1/hooks/{hook}", Tag: "hooks", Created: true,
		Summary: "Create or change a hook",
		Text: "Replaces all its settings except the secret, which stays unless the request contains " +
			"or requests another one. The previous secret stays valid for old_secret_ttl_ms. Only the " +
			"answer to the request that generates a secret contains it."}, hh.setHook)
	route.Register(rt, route.Operation{ID: "delete-hook", Method: http.MethodDelete, Path: "/v1/hooks/{hook}", Tag: "hooks",
		Summary: "Delete a hook",
		Text:    "Returns the deleted hook."}, hh.deleteHook)
	hh.addDeliveryRoute(rt)
}

// HookPath identifies a hook.
type HookPath struct {
	Hook string `path:"hook" minLength:"1" maxLength:"64" doc:"Name of the hook: up to 64 of a-z, 0-9, '.', '_' and '-'."`
}

var hookName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)

func (hh *Handler) hookBy(ctx context.Context, name string) (*persistence.Hook, error) {
	h, err := hh.Store.Hook(ctx, name)
	if api.Missing(err) {
		return nil, route.NewNotFoundError("path.hook", "GET /v1/hooks lists them", "there is no hook %.80q", name)
	}
	return h, err
}

func (hh *Handler) listHooks(ctx context.Context, in *struct{ route.Paging }) (*route.Response[wire.Page[wire.Hook]], error) {
	at, _, err := in.ParseCursor()
	if err != nil {
		return nil, err
	}
	hooks, err := hh.Store.ListHooks(ctx, at.Name, in.Limit+1)
	if err != nil {
		return nil, err
	}
	hooks, more := route.CutPage(hooks, in.Limit)
	page := wire.Page[wire.Hook]{Items: make([]wire.Hook, len(hooks))}
	for i := range hooks {
		if page.Items[i], err = hh.toHook(&hooks[i]); err != nil {
			return nil, err
		}
	}
	if more {
		page.Next = route.Cursor{At: 0, Name: hooks[len(hooks)-1].Name}.String()
	}
	return &route.Response[wire.Page[wire.Hook]]{Body: page}, nil
}

func (hh *Handler) getHook(ctx context.Context, in *HookPath) (*route.Response[wire.Hook], error) {
	h, err := hh.hookBy(ctx, in.Hook)
	if err != nil {
		return nil, err
	}
	shown, err := hh.toHook(h)
	return &route.Response[wire.Hook]{Body: shown}, err
}

func (hh *Handler) deleteHook(ctx context.Context, in *HookPath) (*route.Response[wire.Hook], error) {
	h, err := hh.hookBy(ctx, in.Hook)
	if err != nil {
		return nil, err
	}
	if err := hh.Store.DeleteHook(ctx, in.Hook); err != nil && !api.Missing(err) {
		return nil, err
	}
	shown, err := hh.toHook(h)
	return &route.Response[wire.Hook]{Body: shown}, err
}

type setHookInput struct {
	HookPath
	Body wire.HookSettings
}

func (hh *Handler) setHook(ctx context.Context, in *setHookInput) (*route.StatusResponse[wire.HookResult], error) {
	if !hookName.MatchString(in.Hook) {
		return nil, route.NewInvalidError("path.hook",
			"a name begins with a letter or digit and has up to 64 of a-z, 0-9, '.', '_' and '-'",
			"%.80q is not a valid name for a hook", in.Hook)
	}
	settings, err := hh.checkHook(ctx, &in.Body)
	if err != nil {
		return nil, err
	}
	for range hookTries {
		h, made, err := hh.putHook(ctx, in, settings)
		switch {
		case errors.Is(err, persistence.ErrStale) && in.Body.Revision > 0:
			return nil, newRevisionConflict()
		case errors.Is(err, persistence.ErrStale):
			continue
		case err != nil:
			return nil, err
		}
		shown, err := hh.toHook(h)
		return &route.StatusResponse[wire.HookResult]{Status: route.StatusOf(h.Revision == 1),
			Body: wire.HookResult{Hook: shown, Created: h.Revision == 1, Secret: made}}, err
	}
	return nil, flow.Errorf(flow.Busy, "too many requests change the hook %s at once: try again", in.Hook)
}

// hookTries is how often a change of a hook is tried when other callers change the hook
// concurrently.
const hookTries = 10

// putHook applies a change to the stored hook. It returns ErrStale if the hook has changed since it
// was read, or since the revision in the request.
func (hh *Handler) putHook(ctx context.Context, in *setHookInput, settings []byte) (h *persistence.Hook, made string, err error) {
	h, err = hh.Store.Hook(ctx, in.Hook)
	now := hh.Engine.Now().UnixMilli()
	switch {
	case api.Missing(err):
		h = &persistence.Hook{Name: in.Hook, CreatedAt: now}
	case err != nil:
		return nil, "", err
	}
	if in.Body.Revision > 0 && in.Body.Revision != h.Revision {
		return nil, "", persistence.ErrStale
	}
	h.Settings, h.Disabled, h.UpdatedAt = settings, in.Body.Disabled, now
	h.Revision++
	if h.Secrets, made, err = secretsOf(h.Secrets, &in.Body, now); err != nil {
		return nil, "", err
	}
	return h, made, hh.Store.PutHook(ctx, *h)
}

func newRevisionConflict() error {
	return &route.LocatedError{Where: "body.revision", Hint: "read the hook again, then send your changes with its revision",
		Err: flow.Errorf(flow.Conflict, "another request has changed the hook")}
}

// checkHook compiles settings and rejects those that no delivery could use.
func (hh *Handler) checkHook(ctx context.Context, in *wire.HookSettings) ([]byte, error) {
	settings := hook.Settings(in.HookSpec)
	compiled, err := hook.Compile(settings)
	if err != nil {
		return nil, err
	}
	if in.Flow != "" {
		if err := hh.checkHookFlow(ctx, compiled); err != nil {
			return nil, err
		}
	}
	if in.Secret != "" && (in.NewSecret || !tasks.IsPrintable(in.Secret) || strings.ContainsAny(in.Secret, " \t")) {
		return nil, route.NewInvalidError("body.secret",
			"send one secret of printable characters without blanks, or let the server generate one",
			"the secret is not valid")
	}
	return settings.JSON()
}

// checkHookFlow checks that the flow exists and accepts the params of the hook.
func (hh *Handler) checkHookFlow(ctx context.Context, h *hook.Hook) error {
	f, err := hh.Catalog.FindFlow(ctx, "body.flow", h.Flow)
	if err != nil || h.Signal != "" {
		return err
	}
	v, err := hh.Catalog.FindVersion(ctx, "body.version", f, h.Version)
	if err != nil {
		return err
	}
	plan, err := hh.Reader.Plan(ctx, v.ID)
	if err != nil {
		return err
	}
	if problems := h.Fits(plan.Root.Inputs); len(problems) > 0 {
		return problems
	}
	return nil
}

// secretsOf returns the secrets of a hook after a change, and the generated secret, if any. At most
// two secrets are valid.
func secretsOf(before []persistence.HookSecret, in *wire.HookSettings, now int64) (after []persistence.HookSecret, made string, err error) {
	text := in.Secret
	if in.NewSecret || text == "" && len(before) == 0 {
		key := make([]byte, 32)
		_, _ = rand.Read(key) // Read never fails
		made = "whsec_" + base64.StdEncoding.EncodeToString(key)
		text = made
	}
	if text == "" || len(before) > 0 && before[0].Text == text {
		return before, "", nil
	}
	after = []persistence.HookSecret{{Text: text}}
	if in.OldSecretTTLMS > 0 && len(before) > 0 {
		after = append(after, persistence.HookSecret{Text: before[0].Text, Until: now + in.OldSecretTTLMS})
	}
	return after, made, nil
}

func (hh *Handler) toHook(h *persistence.Hook) (wire.Hook, error) {
	var settings hook.Settings
	if err := json.Unmarshal(h.Settings, &settings); err != nil {
		return wire.Hook{}, err
	}
	shown := wire.Hook{Name: h.Name, HookSpec: wire.HookSpec(settings), Disabled: h.Disabled, Path: "/v1/hooks/" + h.Name,
		Revision: h.Revision, CreatedAt: wire.Millis(h.CreatedAt), UpdatedAt: wire.Millis(h.UpdatedAt)}
	for _, secret := range h.Secrets {
		if secret.Until > hh.Engine.Now().UnixMilli() {
			shown.OldSecretUntil = wire.Millis(secret.Until)
		}
	}
	return shown, nil
}
