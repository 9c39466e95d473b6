// Package socket serves the WebSocket, through which a client follows several tasks and the list of
// tasks.
package socket

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
	"github.com/troupe-engine/troupe/api/v1/catalog"
	"github.com/troupe-engine/troupe/api/v1/history"
	"github.com/troupe-engine/troupe/api/v1/route"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/payload"
)

// These are the limits of one connection.
const (
	maxSubscriptions = 100
	maxStreamRequest = 4 << 10 // bytes
)

const socketPath = "/v1/ws"

// Handler serves the WebSocket.
type Handler struct {
	Router *route.Router
	Finder *catalog.Tasks
	Feeds  *history.FeedSource

	Store     api.Store
	Payloads  *payload.Store
	Logger    *slog.Logger
	Heartbeat time.Duration
	Patience  time.Duration // how long a client may take to read a message
	Channels  map[string]Channel
	lookups   *semaphore.Weighted // limits the lookups of tasks for subscriptions
	news      *tasksNews
}

// AddRoutes adds the routes of the handler.
func (h *Handler) AddRoutes(rt *route.Router) {
	h.lookups = semaphore.NewWeighted(lookupsAtOnce)
	h.news = &tasksNews{store: h.Store, listeners: map[*newsListener]bool{}, log: func(err error) {
		h.Logger.Error("notifications of changed tasks are late", "error", err)
	}}
	rt.Mux.HandleFunc("GET "+socketPath, h.serveSocket)
	o := huma.Operation{
		OperationID: "stream-socket", Method: http.MethodGet, Path: socketPath, Tags: []string{"history"},
		Summary: "Follow many tasks over one WebSocket",
		Description: "Messages are JSON texts. A client sends `{\"subscribe\": {\"channel\": \"task:ID\", " +
			"\"after\": \"12.0\"}}` and `{\"unsubscribe\": {\"channel\": \"task:ID\"}}`; `after` is the ID of " +
			"the last message that it knows. The server sends `{\"channel\": …, \"event\": …, \"id\": …, " +
			"\"data\": …}`, starting with `subscribed`. The channel `task:ID` has the events of the task's " +
			"stream, as `event` and `end`. The channel `digest:ID` has a `digest` of the task (for other " +
			"scopes than its root, subscribe with `scopes`), then `changes` with the changed nodes, at " +
			"most five a second, and `end`. The channel `tasks` (subscribe with `filter`, as for POST " +
			"/v1/tasks/bulk; several channels are `tasks:NAME`) has the changed tasks of the list and the " +
			"number of new ones, as `tasks`, at most four times a second; `stale` means that there are " +
			"too many changes and the list must be read again. The channel `pgflow:run:ID` has the " +
			"events of the run. The last message of a channel is `closed` with a reason: `ended`, " +
			"`unsubscribed`, or `interrupted`, after which there may be more. `rejected` has a problem " +
			"as its data. A connection has at most 100 subscriptions. A connection that is read too " +
			"slowly is closed (1008), and all are when the server stops (1001): connect again and " +
			"subscribe after the last IDs.",
		Responses: map[string]*huma.Response{"default": rt.ProblemResponse(), "101": {
			Description: "Switching Protocols; each message of the server is a StreamMessage",
			Content: map[string]*huma.MediaType{"application/json": {Schema: route.SchemaOf[wire.StreamMessage](
				rt.API.OpenAPI().Components.Schemas)}},
		}},
	}
	rt.RestrictOperation(&o)
	rt.API.OpenAPI().AddOperation(&o)
}

// serveSocket upgrades a request to a WebSocket. The guard has already checked Origin, Host and
// token.
func (h *Handler) serveSocket(w http.ResponseWriter, r *http.Request) {
	if why := h.Router.CheckRole(r.Context(), "stream-socket"); why != nil {
		why.Send(w)
		return
	}
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") || r.ProtoMajor != 1 {
		w.Header().Set("Connection", "Upgrade")
		w.Header().Set("Upgrade", "websocket")
		p := &route.Problem{Problem: wire.Problem{Status: http.StatusUpgradeRequired,
			Code: string(flow.Invalid), RequestID: api.RequestID(r.Context()),
			Message: "this route is a WebSocket", Field: "header.Upgrade", Hint: "connect with a WebSocket client, over HTTP/1.1"}}
		p.AddExplanation().Send(w)
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

// handleRequest carries out a client's request. It sends faults to the client, and the connection
// continues.
func (k *clientSocket) handleRequest(kind websocket.MessageType, data []byte) {
	var req wire.StreamRequest
	err := decodeStrictly(data, &req)
	switch {
	case kind != websocket.MessageText || err != nil:
		k.sendRefusal("", route.NewInvalidError("message",
			`send {"subscribe": {"channel": "task:ID"}} as a text`,
			"the message is not a valid request: %v", errOr(err, "it is binary")))
	case req.Subscribe != nil && req.Unsubscribe == nil:
		k.subscribeChannel(req.Subscribe)
	case req.Unsubscribe != nil && req.Subscribe == nil:
		k.unsubscribeChannel(req.Unsubscribe.Channel)
	default:
		k.sendRefusal("", route.NewInvalidError("message", "send exactly one of them", "the message needs either subscribe or unsubscribe"))
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
		err = &route.LocatedError{Where: "subscribe.channel", Hint: "unsubscribe first",
			Err: flow.Errorf(flow.Conflict, "there is a subscription of this channel")}
	case k.countSubscriptions() >= maxSubscriptions:
		err = &route.LocatedError{Where: "subscribe", Hint: "unsubscribe from others, or open another connection",
			Err: flow.Errorf(flow.Limit, "a connection has at most %d subscriptions", maxSubscriptions)}
	}
	if err != nil {
		k.sendRefusal(req.Channel, err)
		return
	}
	k.startSubscription(req.Channel, tell)
}

// unsubscribeChannel ends a channel. It returns after the last message of the channel.
func (k *clientSocket) unsubscribeChannel(channel string) {
	sub := k.findSubscription(channel)
	if sub == nil {
		k.sendRefusal(channel, route.NewNotFoundError("unsubscribe.channel", "the subscription may have ended already",
			"there is no subscription of this channel"))
		return
	}
	sub.stop(errUnsubscribed)
	<-sub.done
}

// streamFunc sends events to a listener until there are no more or ctx ends.
type streamFunc func(ctx context.Context, to stream.Listener) error

const taskChannel = "task:"

// lookupsAtOnce is how many subscriptions of all connections look up their tasks at once. It leaves
// capacity of the store for other requests.
const lookupsAtOnce = 4

// checkTask returns an error if a task does not exist.
func (h *Handler) checkTask(ctx context.Context, task string) error {
	if err := h.lookups.Acquire(ctx, 1); err != nil {
		return err
	}
	defer h.lookups.Release(1)
	_, err := h.Store.Task(ctx, task)
	return err
}

// findChannel returns the function that serves a channel. A missing task is detected when the
// stream starts.
func (h *Handler) findChannel(req *wire.Subscribe) (streamFunc, error) {
	for prefix, tell := range h.Channels {
		if id, ok := strings.CutPrefix(req.Channel, prefix+":"); ok {
			return func(ctx context.Context, to stream.Listener) error {
				// a task may be followed before it starts
				if err := h.checkTask(ctx, id); err != nil && !api.Missing(err) {
					return err
				}
				return route.LocateError("subscribe", tell(ctx, id, req.After, to))
			}, nil
		}
	}
	if isTasks(req.Channel) {
		if len(req.Scopes) > 0 || req.After != "" {
			return nil, route.NewInvalidError("subscribe", "leave out scopes and after", "channel tasks sends only new events of all tasks")
		}
		return h.streamTasks(req.Filter)
	}
	if req.Filter != nil {
		return nil, route.NewInvalidError("subscribe.filter", "leave it out", "only channel tasks has a filter")
	}
	digest, isDigest := strings.CutPrefix(req.Channel, history.DigestChannel)
	task, isTask := strings.CutPrefix(req.Channel, taskChannel)
	if !isTask && !isDigest {
		return nil, route.NewNotFoundError("subscribe.channel",
			"channels are task:ID, digest:ID, tasks and pgflow:run:ID", "there is no channel %.80q",
			req.Channel)
	}
	if len(req.Scopes) > 0 && !isDigest {
		return nil, route.NewInvalidError("subscribe.scopes", "leave them out", "only channels digest:ID have scopes")
	}
	from, err := history.ParsePosition("subscribe.after", req.After)
	if err != nil {
		return nil, err
	}
	st := history.EventFeed{Source: h.Feeds, Task: task, From: from}
	tell := st.StreamEvents
	if isDigest {
		st.Task = digest
		tell = history.NewDigestFeed(st, req.Scopes).StreamDigest
	}
	return func(ctx context.Context, to stream.Listener) error {
		if err := h.checkTask(ctx, st.Task); api.Missing(err) {
			return route.NewNotFoundError("subscribe.channel", api.Hint(flow.NotFound), "there is no task %.80q", st.Task)
		} else if err != nil {
			return err
		}
		return tell(ctx, to)
	}, nil
}

// Channel sends the events of an object after the message last to a listener, until there are no
// more or ctx ends.
type Channel func(ctx context.Context, id, last string, to stream.Listener) error
