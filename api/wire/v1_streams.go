package wire

import "encoding/json"

// Stream is a stream of a task, to which running steps write values.
type Stream struct {
	Name   string `json:"name" doc:"Name of the stream."`
	Length int64  `json:"length" doc:"Number of values so far."`
	Bytes  int64  `json:"bytes" doc:"Bytes of the values."`
	Ended  bool   `json:"ended" doc:"True if its writer has closed it, or the task has ended."`
}

// StreamValue is a value of a stream.
type StreamValue struct {
	Offset  int64           `json:"offset" doc:"Position of the value in the stream, from 0."`
	Value   json.RawMessage `json:"value" doc:"The value, any JSON."`
	At      Time            `json:"at" doc:"Time when it, or the first of the values stored with it, was written."`
	Step    string          `json:"step,omitempty" doc:"Step that wrote it; absent for a durable function between its steps."`
	Visit   int             `json:"visit,omitempty" doc:"Number of the visit; absent = 1."`
	Unit    int             `json:"unit,omitempty" doc:"Index of the unit; absent = 0."`
	Attempt int             `json:"attempt" doc:"Number of the attempt that wrote it, from 1."`
	Try     int             `json:"try,omitempty" doc:"Number of the try within the attempt, from 1; absent if there is only one."`
	Writer  string          `json:"writer" doc:"Identifies the delivery of the job that wrote it."`
}

// StreamPage is a part of a stream.
type StreamPage struct {
	Values []StreamValue `json:"values" doc:"Values in order; never null."`
	Next   int64         `json:"next" doc:"Offset of the first value that follows, to send as from."`
	Ended  bool          `json:"ended" doc:"True if no value follows, because the stream or the task has ended."`
}

// EndOfStream is the last message of a followed stream.
type EndOfStream struct {
	Task   string `json:"task" doc:"ID of the task."`
	Stream string `json:"stream" doc:"Name of the stream."`
	Next   int64  `json:"next" doc:"Number of values that the stream has."`
	State  string `json:"state" doc:"State of the task. It is still running if the stream was closed before the task ended."`
}

// StreamWrites are values that a job writes to streams of its task.
type StreamWrites struct {
	Token  string        `json:"token,omitempty" maxLength:"256" doc:"Token of the claim; absent for a job that the engine sent to its worker."`
	Writes []StreamWrite `json:"writes" minItems:"1" maxItems:"1000" doc:"Values, grouped by stream."`
}

// StreamWrite is a group of values for one stream.
type StreamWrite struct {
	Stream string            `json:"stream" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$" doc:"Name of the stream."`
	Writer string            `json:"writer" minLength:"1" maxLength:"100" doc:"Identifies the delivery of the job to its worker: a UUID that the worker makes."`
	Number int64             `json:"number" minimum:"0" doc:"Number of values of the writer in the stream, with these. Known values are ignored."`
	At     Time              `json:"at,omitzero" doc:"Time of the first value; the default is now."`
	Step   string            `json:"step,omitempty" maxLength:"20000" doc:"Step that writes them."`
	Try    int               `json:"try,omitempty" minimum:"0" doc:"Number of the try within the attempt, from 1."`
	Values []json.RawMessage `json:"values,omitempty" maxItems:"20000" doc:"The values, any JSON."`
	Ends   bool              `json:"ends,omitempty" doc:"True if the stream ends with these values."`
}

// StreamWriteResult is the result of one write.
type StreamWriteResult struct {
	Stream  string   `json:"stream" doc:"Name of the stream."`
	Problem *Problem `json:"problem,omitempty" doc:"Reason for which none of the values is stored."`
}

// StreamWriteResults is the answer to StreamWrites.
type StreamWriteResults struct {
	Items []StreamWriteResult `json:"items" doc:"Results in the order of the writes; never null."`
}
