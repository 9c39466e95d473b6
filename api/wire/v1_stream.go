package wire

import "encoding/json"

// StreamRequest is a client's message over the WebSocket of /v1/ws. It has exactly one of its
// fields.
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
	// id of the last known message; for a digest, its seq
	After string `json:"after,omitempty"`
	// for a digest: the scopes other than the root, which is / here
	Scopes []string `json:"scopes,omitempty"`

	Filter *TaskFilter `json:"filter,omitempty"` // for tasks: the selected ones; absent = all
}

// Unsubscribe is a request to end a channel.
type Unsubscribe struct {
	Channel string `json:"channel"`
}

// StreamMessage is a server's message over the WebSocket. Event is one of those below, or one of
// the channel: on a task's channel, event (data is an Event) and end (an End); on that of its
// digest, digest (a Digest), changes (DigestChanges) and end; on a run's channel, those of its
// events.
type StreamMessage struct {
	Channel string          `json:"channel,omitempty" doc:"Channel of the message; absent for a request that names none."`
	Event   string          `json:"event" doc:"subscribed, rejected, closed, or an event of the channel."`
	ID      string          `json:"id,omitempty" doc:"ID after which to resume a subscription."`
	Data    json.RawMessage `json:"data,omitempty" doc:"Data of the event."`
}

// Events of every channel.
const (
	StreamSubscribed = "subscribed" // nothing is missed from now on
	StreamRejected   = "rejected"   // data is the Problem; the connection goes on
	StreamClosed     = "closed"     // the channel's last message; data is a Closed

	StreamEvent = "event"
	StreamEnd   = "end"

	StreamDigest  = "digest"
	StreamChanges = "changes"

	StreamTasks = "tasks" // data is a TaskNews
	StreamStale = "stale" // more has happened than is reported: read the list again
)

// Closed is the reason for which a channel ended.
type Closed struct {
	Reason string `json:"reason"`
}

// Reasons of a Closed.
const (
	ClosedEnded        = "ended"        // the task is over
	ClosedUnsubscribed = "unsubscribed" // on request
	ClosedInterrupted  = "interrupted"  // there may be more: subscribe again after the last id
)
