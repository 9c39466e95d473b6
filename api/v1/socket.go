package v1

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/coder/websocket"
	"github.com/danielgtaylor/huma/v2"
	"golang.org/x/sync/semaphore"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/stream"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/payload"
)

// Limits of one connection.
const (
	maxSubscriptions = 100
	maxStreamRequest = 4 << 10 // bytes
)

const socketPath = "/v1/ws"

// socketHandler serves the WebSocket.
type socketHandler struct {
	router *apiRouter
	finder *taskFinder
	feeds  *feedSource

	store     api.Store
	payloads  *payload.Store
	logger    *slog.Logger
	heartbeat time.Duration
	patience  time.Duration // how long a client may take to read a message
	channels  map[string]Channel
	lookups   *semaphore.Weighted // limits lookups for subscriptions
	news      *tasksNews
}

func newSocketHandler(cfg Config, rt *apiRouter, finder *taskFinder, feeds *feedSource) *socketHandler {
	return &socketHandler{
		router: rt, finder: finder, feeds: feeds, store: cfg.Store, payloads: cfg.Payloads,
		logger: cfg.Logger, heartbeat: cfg.Heartbeat, patience: cfg.Patience, channels: cfg.Channels,
		lookups: semaphore.NewWeighted(lookupsAtOnce),
		news: &tasksNews{store: cfg.Store, listeners: map[*newsListener]bool{}, log: func(err error) {
			cfg.Logger.Error("changed tasks are told late", "error", err)
		}},
	}
}

func (h *socketHandler) addSocketRoute(rt *apiRouter) {
	rt.mux.HandleFunc("GET "+socketPath, h.serveSocket)
	o := huma.Operation{
		OperationID: "stream-socket", Method: http.MethodGet, Path: socketPath, Tags: []string{"history"},
		Summary: "Follow many tasks over one WebSocket",
		Description: "Messages are JSON texts. A client sends `{\"subscribe\": {\"channel\": \"task:ID\", \"after\": \"12.0\"}}` and " +
			"`{\"unsubscribe\": {\"channel\": \"task:ID\"}}`; `after` is the id of the last message it knows. The server answers with " +
			"`{\"channel\": …, \"event\": …, \"id\": …, \"data\": …}`: `subscribed`; then on " +
			"`task:ID` what the stream of the task tells, as `event` and `end`, " +
			"on `digest:ID` a `digest` of the task (subscribe with `scopes` for other ones than " +
			"its root), then `changes` with the nodes that have changed, at most five a second, and `end`, " +
			"on `tasks` (subscribe with `filter`, as that of POST /v1/tasks/bulk; `tasks:NAME` " +
			"for several) which tasks of the list have changed and how many of them are new, as " +
			"`tasks`, at most four times a second, or `stale` when that is too much and the " +
			"list is to be read again, " +
			"and on `pgflow:run:ID` what that of the run tells; at last `closed` with a reason: " +
			"`ended`, `unsubscribed`, or `interrupted`, after which there may be more. " +
			"`refused` has a problem as its data. A connection has at most 100 subscriptions. " +
			"One that is read too slowly is closed (1008), as are all when the server leaves (1001): " +
			"connect again and subscribe behind the last ids.",
		Responses: map[string]*huma.Response{"default": rt.problemResponse(), "101": {
			Description: "Switching Protocols; each message of the server is a StreamMessage",
			Content: map[string]*huma.MediaType{"application/json": {Schema: refTo[wire.StreamMessage](
				rt.huma.OpenAPI().Components.Schemas)}},
		}},
	}
	rt.restrictOperation(&o)
	rt.huma.OpenAPI().AddOperation(&o)
}

// serveSocket upgrades a request. The guard in front of this API has checked its Origin, Host and
// token.
func (h *socketHandler) serveSocket(w http.ResponseWriter, r *http.Request) {
	if why := h.router.checkRole(r.Context(), roles["stream-socket"]); why != nil {
		why.writeTo(w)
		return
	}
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") || r.ProtoMajor != 1 {
		w.Header().Set("Connection", "Upgrade")
		w.Header().Set("Upgrade", "websocket")
		p := &problem{wire.Problem{Status: http.StatusUpgradeRequired, Kind: string(flow.Invalid), Request: api.RequestID(r.Context()),
			What: "this route is a WebSocket", Where: "header.Upgrade", Hint: "connect with a WebSocket client, over HTTP/1.1"}}
		p.addExplanation().writeTo(w)
		return
	}
	leaving, leave := stream.Stay(w, r)
	defer leave()
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
	if err != nil {
		return // Accept has answered
	}
	conn.SetReadLimit(maxStreamRequest)
	newSocket(h, conn, leaving).serveConn()
}

// handleRequest carries out a client's request. Faults are sent to the client, and the connection
// continues.
func (k *clientSocket) handleRequest(kind websocket.MessageType, data []byte) {
	var req wire.StreamRequest
	err := decodeStrictly(data, &req)
	switch {
	case kind != websocket.MessageText || err != nil:
		k.sendRefusal("", newInvalidError("message",
			`send {"subscribe": {"channel": "task:ID"}} as a text`,
			"no request can be read from it: %v", errOr(err, "it is binary")))
	case req.Subscribe != nil && req.Unsubscribe == nil:
		k.subscribeChannel(req.Subscribe)
	case req.Unsubscribe != nil && req.Subscribe == nil:
		k.unsubscribeChannel(req.Unsubscribe.Channel)
	default:
		k.sendRefusal("", newInvalidError("message", "send either of them", "it asks neither or both to subscribe and to unsubscribe"))
	}
}

func decodeStrictly(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the JSON object")
	}
	return nil
}

func errOr(err error, text string) error {
	if err == nil {
		return errors.New(text)
	}
	return err
}

func (k *clientSocket) subscribeChannel(req *wire.Subscribe) {
	tell, err := k.s.findChannel(req)
	switch {
	case err != nil:
	case k.findSubscription(req.Channel) != nil:
		err = &locatedError{"subscribe.channel", "unsubscribe first", flow.Errorf(flow.Conflict, "there is a subscription of this channel")}
	case k.countSubscriptions() >= maxSubscriptions:
		err = &locatedError{"subscribe", "unsubscribe from others, or open another connection",
			flow.Errorf(flow.Limit, "a connection has at most %d subscriptions", maxSubscriptions)}
	}
	if err != nil {
		k.sendRefusal(req.Channel, err)
		return
	}
	k.startSubscription(req.Channel, tell)
}

// unsubscribeChannel returns after the last message of the channel.
func (k *clientSocket) unsubscribeChannel(channel string) {
	sub := k.findSubscription(channel)
	if sub == nil {
		k.sendRefusal(channel, newNotFoundError("unsubscribe.channel", "it may have ended already",
			"there is no subscription of this channel"))
		return
	}
	sub.stop(errUnsubscribed)
	<-sub.done
}

// streamFunc sends events to a listener until there are no more, or ctx ends.
type streamFunc func(ctx context.Context, to stream.Listener) error

const taskChannel = "task:"

// lookupsAtOnce is how many subscriptions of all connections may look up their tasks at once, so
// that a flood of them leaves capacity of the store for other requests.
const lookupsAtOnce = 4

// checkTask returns an error if a task does not exist.
func (h *socketHandler) checkTask(ctx context.Context, task string) error {
	if err := h.lookups.Acquire(ctx, 1); err != nil {
		return err
	}
	defer h.lookups.Release(1)
	_, err := h.store.Task(ctx, task)
	return err
}

// findChannel returns the function that serves a channel. A task that does not exist is detected
// when the stream starts.
func (h *socketHandler) findChannel(req *wire.Subscribe) (streamFunc, error) {
	for prefix, tell := range h.channels {
		if id, ok := strings.CutPrefix(req.Channel, prefix+":"); ok {
			return func(ctx context.Context, to stream.Listener) error {
				// it may be followed before it starts
				if err := h.checkTask(ctx, id); err != nil && !api.Missing(err) {
					return err
				}
				return locateError("subscribe", tell(ctx, id, req.After, to))
			}, nil
		}
	}
	if isTasks(req.Channel) {
		if len(req.Scopes) > 0 || req.After != "" {
			return nil, newInvalidError("subscribe", "leave out scopes and after", "channel tasks tells what happens from now on")
		}
		return h.streamTasks(req.Filter)
	}
	if req.Filter != nil {
		return nil, newInvalidError("subscribe.filter", "leave it out", "only channel tasks has a filter")
	}
	digest, isDigest := strings.CutPrefix(req.Channel, digestChannel)
	task, isTask := strings.CutPrefix(req.Channel, taskChannel)
	if !isTask && !isDigest {
		return nil, newNotFoundError("subscribe.channel",
			"channels are task:ID, digest:ID, tasks and pgflow:run:ID", "there is no channel %.80q",
			req.Channel)
	}
	if len(req.Scopes) > 0 && !isDigest {
		return nil, newInvalidError("subscribe.scopes", "leave them out", "only channels digest:ID have scopes")
	}
	from, err := parsePosition("subscribe.after", req.After)
	if err != nil {
		return nil, err
	}
	st := eventFeed{source: h.feeds, task: task, from: from}
	tell := st.streamEvents
	if isDigest {
		st.task = digest
		tell = newDigestFeed(st, req.Scopes).streamDigest
	}
	return func(ctx context.Context, to stream.Listener) error {
		if err := h.checkTask(ctx, st.task); api.Missing(err) {
			return newNotFoundError("subscribe.channel", api.Hint(flow.NotFound), "there is no task %.80q", st.task)
		} else if err != nil {
			return err
		}
		return tell(ctx, to)
	}, nil
}
