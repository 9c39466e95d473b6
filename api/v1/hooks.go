package v1

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
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/hook"
	"github.com/troupe-engine/troupe/internal/bounded"
	"github.com/troupe-engine/troupe/persistence"
)

// Routes to manage hooks. Deliveries to them are handled in deliver.go.

// hookHandler serves hooks and the deliveries to them.
type hookHandler struct {
	router  *apiRouter
	catalog *flowCatalog

	store    api.Store
	reader   api.Reader
	engine   engine.Engine
	logger   *slog.Logger
	hooks    compiledHooks
	refusals bounded.Once // reasons for which deliveries were rejected
}

func (hh *hookHandler) addHookRoutes(rt *apiRouter) {
	registerOperation(rt, apiOperation{id: "list-hooks", method: http.MethodGet, path: "/v1/hooks", tag: "hooks",
		summary: "List hooks, in order of name"}, hh.listHooks)
	registerOperation(rt, apiOperation{id: "get-hook", method: http.MethodGet, path: "/v1/hooks/{hook}", tag: "hooks",
		summary: "Read a hook, without its secret"}, hh.getHook)
	registerOperation(rt, apiOperation{id: "set-hook", method: http.MethodPut, path: "/v1/hooks/{hook}", tag: "hooks", created: true,
		summary: "Make a hook, or change it",
		text: "All its settings are replaced, but for the secret, which stays unless another " +
			"one is sent or asked for. The one before stays valid for keep_ms. A secret is " +
			"never answered, but for one that is made, in the answer that tells of it."}, hh.setHook)
	registerOperation(rt, apiOperation{id: "delete-hook", method: http.MethodDelete, path: "/v1/hooks/{hook}", tag: "hooks",
		summary: "Delete a hook, and tell what it was"}, hh.deleteHook)
	hh.addDeliveryRoute(rt)
}

// HookPath identifies a hook.
type HookPath struct {
	Hook string `path:"hook" minLength:"1" maxLength:"64" doc:"name of the hook: up to 64 of a-z, 0-9, '.', '_' and '-'"`
}

var hookName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)

func (hh *hookHandler) hookBy(ctx context.Context, name string) (*persistence.Hook, error) {
	h, err := hh.store.Hook(ctx, name)
	if api.Missing(err) {
		return nil, newNotFoundError("path.hook", "GET /v1/hooks lists them", "there is no hook %.80q", name)
	}
	return h, err
}

func (hh *hookHandler) listHooks(ctx context.Context, in *struct{ Paging }) (*bodyResponse[wire.Page[wire.Hook]], error) {
	at, _, err := in.parseCursor()
	if err != nil {
		return nil, err
	}
	hooks, err := hh.store.ListHooks(ctx, at.name, in.Limit+1)
	if err != nil {
		return nil, err
	}
	hooks, more := cutPage(hooks, in.Limit)
	page := wire.Page[wire.Hook]{Items: make([]wire.Hook, len(hooks))}
	for i := range hooks {
		if page.Items[i], err = hh.toHook(&hooks[i]); err != nil {
			return nil, err
		}
	}
	if more {
		page.Next = listCursor{0, hooks[len(hooks)-1].Name}.String()
	}
	return &bodyResponse[wire.Page[wire.Hook]]{page}, nil
}

func (hh *hookHandler) getHook(ctx context.Context, in *HookPath) (*bodyResponse[wire.Hook], error) {
	h, err := hh.hookBy(ctx, in.Hook)
	if err != nil {
		return nil, err
	}
	shown, err := hh.toHook(h)
	return &bodyResponse[wire.Hook]{shown}, err
}

func (hh *hookHandler) deleteHook(ctx context.Context, in *HookPath) (*bodyResponse[wire.Hook], error) {
	h, err := hh.hookBy(ctx, in.Hook)
	if err != nil {
		return nil, err
	}
	if err := hh.store.DeleteHook(ctx, in.Hook); err != nil && !api.Missing(err) {
		return nil, err
	}
	shown, err := hh.toHook(h)
	return &bodyResponse[wire.Hook]{shown}, err
}

type setHookInput struct {
	HookPath
	Body wire.SetHook
}

func (hh *hookHandler) setHook(ctx context.Context, in *setHookInput) (*statusResponse[wire.HookSet], error) {
	if !hookName.MatchString(in.Hook) {
		return nil, newInvalidError("path.hook",
			"a name begins with a letter or digit and has up to 64 of a-z, 0-9, '.', '_' and '-'",
			"%.80q is no name for a hook", in.Hook)
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
		return &statusResponse[wire.HookSet]{statusOf(h.Revision == 1),
			wire.HookSet{Hook: shown, Created: h.Revision == 1, Secret: made}}, err
	}
	return nil, flow.Errorf(flow.Busy, "the hook %s is being changed by many at once: try again", in.Hook)
}

// hookTries is the number of attempts to change a hook while other callers change it.
const hookTries = 10

// putHook changes a hook as it is now. It returns ErrStale if the hook has changed since it was
// read, or since the revision that was sent.
func (hh *hookHandler) putHook(ctx context.Context, in *setHookInput, settings []byte) (h *persistence.Hook, made string, err error) {
	h, err = hh.store.Hook(ctx, in.Hook)
	now := hh.engine.Now().UnixMilli()
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
	return h, made, hh.store.PutHook(ctx, *h)
}

func newRevisionConflict() error {
	return &locatedError{where: "body.revision", hint: "read the hook again, and send what is to change",
		err: flow.Errorf(flow.Conflict, "somebody else has changed the hook")}
}

// checkHook rejects settings that no delivery could use.
func (hh *hookHandler) checkHook(ctx context.Context, in *wire.SetHook) ([]byte, error) {
	settings := hook.Settings(in.HookSettings)
	compiled, err := hook.Compile(settings)
	if err != nil {
		return nil, err
	}
	if in.Flow != "" {
		if err := hh.checkHookFlow(ctx, compiled); err != nil {
			return nil, err
		}
	}
	if in.Secret != "" && (in.NewSecret || !isPrintable(in.Secret) || strings.ContainsAny(in.Secret, " \t")) {
		return nil, newInvalidError("body.secret",
			"send one secret of printable characters without blanks, or have one made",
			"the secret cannot be used")
	}
	return settings.JSON()
}

// checkHookFlow checks that the flow exists and accepts the params that the hook starts it with.
func (hh *hookHandler) checkHookFlow(ctx context.Context, h *hook.Hook) error {
	f, err := hh.catalog.flowBy(ctx, "body.flow", h.Flow)
	if err != nil || h.Signal != "" {
		return err
	}
	v, err := hh.catalog.findVersion(ctx, "body.version", f, h.Version)
	if err != nil {
		return err
	}
	plan, err := hh.reader.Plan(ctx, v.ID)
	if err != nil {
		return err
	}
	if problems := h.Fits(plan.Root.Inputs); len(problems) > 0 {
		return problems
	}
	return nil
}

// secretsOf returns the secrets of a hook after a change, and the generated one, if any. At most
// two are valid.
func secretsOf(before []persistence.HookSecret, in *wire.SetHook, now int64) (after []persistence.HookSecret, made string, err error) {
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
	if in.KeepMS > 0 && len(before) > 0 {
		after = append(after, persistence.HookSecret{Text: before[0].Text, Until: now + in.KeepMS})
	}
	return after, made, nil
}

func (hh *hookHandler) toHook(h *persistence.Hook) (wire.Hook, error) {
	var settings hook.Settings
	if err := json.Unmarshal(h.Settings, &settings); err != nil {
		return wire.Hook{}, err
	}
	shown := wire.Hook{Name: h.Name, HookSettings: wire.HookSettings(settings), Disabled: h.Disabled, Path: "/v1/hooks/" + h.Name,
		Revision: h.Revision, CreatedAt: wire.Millis(h.CreatedAt), UpdatedAt: wire.Millis(h.UpdatedAt)}
	for _, secret := range h.Secrets {
		if secret.Until > hh.engine.Now().UnixMilli() {
			shown.OldSecretUntil = wire.Millis(secret.Until)
		}
	}
	return shown, nil
}
