package wire

import "encoding/json"

// StreamRequest is what a client says over the WebSocket of /v1/ws: exactly one of its fields.
type StreamRequest struct {
	Subscribe   *Subscribe   `json:"subscribe,omitempty"`
	Unsubscribe *Unsubscribe `json:"unsubscribe,omitempty"`
}

// Subscribe asks for what happens on a channel: task:{id of a task}, which has the events of /v1,
// digest:{id of a task}, which has a Digest and then DigestChanges, tasks, which has TaskNews of
// those that a filter picks (tasks:{any text} where there are several filters), or pgflow:run:{id
// of a run}, which has the events of pgflow's clients.
type Subscribe struct {
	Channel string   `json:"channel"`
	After   string   `json:"after,omitempty"`  // id of the last message that is known; of a digest its seq
	Scopes  []string `json:"scopes,omitempty"` // of a digest: other ones than the root, which is / here

	Filter *TaskFilter `json:"filter,omitempty"` // of tasks: which ones; absent = all
}

// Unsubscribe asks for no more of a channel.
type Unsubscribe struct {
	Channel string `json:"channel"`
}

// StreamMessage is what the server says over the WebSocket. Event is one of those below, or of the
// channel's own: on a task's channel event (data is an Event) and end (an End), on that of its
// digest digest (a Digest), changes (DigestChanges) and end, on a run's those of its events.
type StreamMessage struct {
	Channel string          `json:"channel,omitempty" doc:"absent when it is about a request that names none"`
	Event   string          `json:"event" doc:"subscribed, refused, closed, or an event of the channel"`
	ID      string          `json:"id,omitempty" doc:"where to subscribe again behind it"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// Events of every channel.
const (
	StreamSubscribed = "subscribed" // from now on nothing is missed
	StreamRefused    = "refused"    // data is the Problem; what else there is goes on
	StreamClosed     = "closed"     // the channel's last message; data is a Closed

	StreamEvent = "event"
	StreamEnd   = "end"

	StreamDigest  = "digest"
	StreamChanges = "changes"

	StreamTasks = "tasks" // data is a TaskNews
	StreamStale = "stale" // more has happened than is told: read the list again
)

// Closed says why a channel has nothing more to say.
type Closed struct {
	Reason string `json:"reason"`
}

// Reasons of a Closed.
const (
	ClosedEnded        = "ended"        // it is over
	ClosedUnsubscribed = "unsubscribed" // as was asked
	ClosedInterrupted  = "interrupted"  // there may be more: subscribe again behind the last id
)
