package wire

import "encoding/json"

// StreamRequest is a client's message over the WebSocket of /v1/ws. Exactly one field is set.
type StreamRequest struct {
	Subscribe   *Subscribe   `json:"subscribe,omitempty"`
	Unsubscribe *Unsubscribe `json:"unsubscribe,omitempty"`
}

// Subscribe is a request for the events of a channel:
//
//   - task:{id of a task} has the events of /v1.
//   - digest:{id of a task} has a Digest and then DigestChanges.
//   - tasks has TaskNews of the tasks that a filter selects (tasks:{any text} if there are several
//     filters).
//   - pgflow:run:{id of a run} has the events of pgflow's clients.
type Subscribe struct {
	Channel string `json:"channel"`
	// id of the last known message; for a digest, the seq
	After string `json:"after,omitempty"`
	// for a digest: additional scopes; / means the root
	Scopes []string `json:"scopes,omitempty"`

	Filter *TaskFilter `json:"filter,omitempty"` // only for a tasks channel; absent means all
}

// Unsubscribe is a request to end a channel.
type Unsubscribe struct {
	Channel string `json:"channel"`
}

// StreamMessage is a server's message over the WebSocket. Event is one of the events below, or an
// event of the channel. A task's channel has event (data is an Event) and end (a TaskEnd). A
// digest's channel has digest (a Digest), changes (DigestChanges) and end. A run's channel has the
// events of pgflow.
type StreamMessage struct {
	Channel string          `json:"channel,omitempty" doc:"Channel of the message; absent for a request that names none."`
	Event   string          `json:"event" doc:"subscribed, rejected, closed, or an event of the channel."`
	ID      string          `json:"id,omitempty" doc:"ID after which to resume a subscription."`
	Data    json.RawMessage `json:"data,omitempty" doc:"Data of the event."`
}

// These events occur on every channel.
const (
	StreamSubscribed = "subscribed" // later events are not missed
	StreamRejected   = "rejected"   // data is the Problem; the connection continues
	StreamClosed     = "closed"     // the channel's last message; data is a Closed

	StreamEvent = "event"
	StreamEnd   = "end"

	StreamDigest  = "digest"
	StreamChanges = "changes"

	StreamTasks = "tasks" // data is a TaskNews
	StreamStale = "stale" // too many changes to report: read the list again
)

// Closed is the reason why a channel ended.
type Closed struct {
	Reason string `json:"reason"`
}

// These are the reasons in Closed.
const (
	ClosedEnded        = "ended"        // the task has ended
	ClosedUnsubscribed = "unsubscribed" // the client unsubscribed
	ClosedInterrupted  = "interrupted"  // more events may follow: subscribe again after the last id
)
