package hooks

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/v1/route"
	"github.com/troupe-engine/troupe/api/v1/tasks"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/hook"
	"github.com/troupe-engine/troupe/persistence"
)

// Deliveries need no token, because they are signed. Nothing in a body is used before the signature
// is checked. A sender without a valid signature learns nothing, not even which hooks exist.

const deliveryPath = "/v1/hooks/{hook}"

// maxDelivery is the maximum size of a delivery in bytes. It is small, because the sender is
// unknown until the whole body is read.
const maxDelivery = 1 << 20

// MountDeliveries adds the route that accepts a signature in place of a token.
func (hh *Handler) MountDeliveries(shell *api.Server) {
	shell.MountOpen("POST "+deliveryPath, shell.FromOutside(hh.Router, maxDelivery))
}

func (hh *Handler) addDeliveryRoute(rt *route.Router) {
	rt.Mux.HandleFunc("POST "+deliveryPath, hh.handleDelivery)
	schemas := rt.API.OpenAPI().Components.Schemas
	rt.API.OpenAPI().AddOperation(&huma.Operation{
		OperationID: "deliver", Method: http.MethodPost, Path: deliveryPath, Tags: []string{"hooks"}, Security: []map[string][]string{{}},
		Summary: "Send a delivery to a hook",
		Description: "Starts or signals a task, as the hook defines. No token is needed: a delivery is " +
			"signed by HMAC-SHA256 with the hook's secret, in the form of Standard Webhooks (the headers " +
			"`webhook-id`, `webhook-timestamp` and `webhook-signature`), of GitHub or of Stripe, as the " +
			"hook defines. A delivery that is more than five minutes old is rejected. A repeated delivery " +
			"gets the answer of the first one, and nothing is done again. A wrong signature and an " +
			"unknown hook are rejected in the same way (401).",
		Parameters: []*huma.Param{{Name: "hook", In: "path", Required: true,
			Description: "Name of the hook.", Schema: &huma.Schema{Type: huma.TypeString}}},
		RequestBody: &huma.RequestBody{Description: "JSON, a form or a text of at most 1 MiB.", Content: map[string]*huma.MediaType{
			"application/json": {Schema: &huma.Schema{Description: "Any JSON."}}}},
		Responses: map[string]*huma.Response{"default": rt.ProblemResponse(),
			"200": {Description: "OK",
				Content: map[string]*huma.MediaType{"application/json": {Schema: route.SchemaOf[wire.HookDelivery](
					schemas)}}},
			"201": {Description: "Created: a task was started",
				Content: map[string]*huma.MediaType{"application/json": {Schema: route.SchemaOf[wire.HookDelivery](
					schemas)}}}},
	})
}

// handleDelivery answers a delivery.
func (hh *Handler) handleDelivery(w http.ResponseWriter, r *http.Request) {
	done, err := hh.acceptDelivery(w, r)
	if err != nil {
		p := hh.Router.ToProblem(r.Context(), err)
		api.SayWhen(w.Header(), p.Status)
		p.Send(w)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(route.StatusOf(done.Created))
	_ = json.NewEncoder(w).Encode(done) // a client that is gone needs no answer
}

func (hh *Handler) acceptDelivery(w http.ResponseWriter, r *http.Request) (*wire.HookDelivery, error) {
	// the original request, which still has its Content-Type
	sent := route.ExchangeOf(r.Context()).Request
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxDelivery))
	if err != nil {
		return nil, bodyReadError(err)
	}
	if err := engine.CheckStore(hh.Engine); err != nil {
		return nil, err
	}
	h, signed, err := hh.signedFor(sent, r.PathValue("hook"), text)
	if err != nil {
		return nil, err
	}
	value, err := hook.Body(sent.Header.Get("Content-Type"), text)
	if err != nil {
		return nil, err
	}
	d := &hook.Delivery{Hook: h.Name, ID: signed.ID(text), Headers: lowerHeaderNames(sent.Header), Query: sent.URL.Query(), Body: value}
	compiled, err := hh.hooks.compileHook(h)
	if err != nil {
		return nil, err
	}
	act, err := compiled.Decide(d)
	if err != nil {
		return nil, route.LocateError("hook", err)
	}
	done := &wire.HookDelivery{Hook: h.Name, Delivery: d.ID, Ignored: act.Ignored}
	if act.Ignored {
		return done, nil
	}
	now := hh.Engine.Now()
	sum := sha256.Sum256(text)
	return hh.deliverOnce(r.Context(), compiled, &act, done, persistence.Delivery{Hook: h.Name,
		ID: d.ID, Digest: hex.EncodeToString(sum[:]),
		At: now.UnixMilli(), Until: signed.Until(now).UnixMilli()})
}

// bodyReadError converts an error from reading a body.
func bodyReadError(err error) error {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return err
	}
	return route.NewInvalidError("body", "send the whole body", "the body is incomplete")
}

func lowerHeaderNames(header http.Header) map[string][]string {
	names := make(map[string][]string, len(header))
	for name, values := range header {
		names[strings.ToLower(name)] = values
	}
	return names
}

// signedFor returns the hook whose secret has signed a delivery. All other senders get the same
// error.
func (hh *Handler) signedFor(r *http.Request, name string, text []byte) (*persistence.Hook, *hook.Signed, error) {
	h, err := hh.Store.Hook(r.Context(), name)
	if err != nil && !api.Missing(err) {
		return nil, nil, err
	}
	if h == nil {
		var nobody *hook.Signed
		nobody.By("", text) // takes as long as the check for a known hook
		return nil, nil, hh.refuseUnsigned(r, "a delivery to a hook that is not there")
	}
	var settings hook.Settings
	if err := json.Unmarshal(h.Settings, &settings); err != nil {
		return nil, nil, err
	}
	now := hh.Engine.Now()
	signed, err := hook.Read(settings.Scheme, strings.ToLower(settings.Header), r.Header.Values)
	right := false
	for _, secret := range h.Secrets {
		if secret.Until == 0 || secret.Until > now.UnixMilli() {
			right = signed.By(secret.Text, text) || right
		}
	}
	switch {
	case err != nil:
		return nil, nil, hh.refuseUnsigned(r, "a delivery to the hook "+h.Name+" is not signed: "+err.Error())
	case !right:
		return nil, nil, hh.refuseUnsigned(r, "a delivery to the hook "+h.Name+" has a wrong signature")
	case signed.Late(now) != "":
		why := "the delivery has come at the wrong time: " + signed.Late(now)
		hh.logRefusal(r, "hook "+h.Name+": "+why)
		return nil, nil, &api.Refusal{Status: http.StatusUnauthorized, Kind: flow.Denied, Text: why}
	case h.Disabled:
		return nil, nil, flow.Errorf(flow.Denied, "the hook %s is disabled", h.Name)
	}
	return h, signed, nil
}

// refuseUnsigned logs the reason, and returns the same error for every unsigned delivery.
func (hh *Handler) refuseUnsigned(r *http.Request, why string) error {
	hh.logRefusal(r, why)
	return &route.LocatedError{Where: "path.hook", Hint: "check the name of the hook, its secret, and how the delivery is signed",
		Err: &api.Refusal{Status: http.StatusUnauthorized, Kind: flow.Denied,
			Text: "there is no such hook, or the delivery is not signed with its secret"}}
}

// logRefusal logs a reason once per host. A reason must contain no text from the sender.
func (hh *Handler) logRefusal(r *http.Request, why string) {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	if hh.refusals.First(host + " " + why) {
		hh.Logger.Info("deliveries rejected; repeats from this host are not logged", "host", host, "reason", why)
	}
}

// deliverOnce carries out a delivery, unless it was carried out before.
func (hh *Handler) deliverOnce(ctx context.Context, h *hook.Hook, act *hook.Act,
	done *wire.HookDelivery, d persistence.Delivery) (*wire.HookDelivery, error) {
	known, err := hh.Store.BeginDelivery(ctx, d)
	if err != nil {
		return nil, err
	}
	if known != nil && known.Digest != d.Digest {
		return nil, flow.Errorf(flow.Conflict, "an earlier delivery with the ID %s had another body", d.ID)
	}
	if known != nil && known.Answer != nil {
		if err := json.Unmarshal(known.Answer, done); err != nil {
			return nil, err
		}
		done.Created, done.Repeated = false, true
		return done, nil
	}
	if h.Signal != "" {
		err = hh.signalBy(ctx, h, act, done)
	} else {
		err = hh.startBy(ctx, h, act, done)
	}
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(done)
	if err == nil {
		err = hh.Store.EndDelivery(ctx, d.Hook, d.ID, text)
	}
	if err != nil { // the delivery was carried out; the task recognizes a repetition
		hh.Logger.Warn("storing the result of a delivery failed", "hook", d.Hook, "delivery", d.ID, "error", err)
	}
	return done, nil
}

// startBy starts the task for a delivery.
func (hh *Handler) startBy(ctx context.Context, h *hook.Hook, act *hook.Act, done *wire.HookDelivery) error {
	if err := tasks.CheckLabels(act.Labels); err != nil {
		return err
	}
	f, err := hh.Catalog.FindFlow(ctx, "hook.flow", h.Flow)
	if err != nil {
		return err
	}
	v, err := hh.Catalog.FindVersion(ctx, "hook.version", f, h.Version)
	if err != nil {
		return err
	}
	n := engine.NewTask{VersionID: v.ID, Newest: h.Version == 0, Params: act.Params, Labels: act.Labels, Key: act.Key}
	task, err := hh.Engine.StartTask(ctx, n)
	if flow.ErrorKindOf(err) == flow.Conflict && act.Key == hook.StartKey(done.Hook, done.Delivery) {
		// An earlier try of the delivery started the task before the hook was changed.
		done.Task, err = n.TaskID(f.ID)
		return err
	}
	done.Task, done.Created = task.Task, task.Created
	return route.LocateError("hook.params", err)
}

// signalBy signals the task that a delivery refers to.
func (hh *Handler) signalBy(ctx context.Context, h *hook.Hook, act *hook.Act, done *wire.HookDelivery) error {
	task := act.Task
	if task == "" {
		f, err := hh.Catalog.FindFlow(ctx, "hook.flow", h.Flow)
		if err != nil {
			return err
		}
		n := engine.NewTask{Key: act.Key}
		if task, err = n.TaskID(f.ID); err != nil {
			return err
		}
	}
	sum := sha256.Sum256([]byte(done.Hook + "/" + done.Delivery))
	_, err := hh.Engine.Do(ctx, engine.Order{Task: task, Request: "hook-" + hex.EncodeToString(sum[:16]),
		Command: flow.Signal{Key: h.Signal, Value: act.Value, By: "hook " + done.Hook, Alive: true}})
	done.Task = task
	return route.LocateError("hook.signal", err)
}
