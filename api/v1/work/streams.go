package work

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/v1/route"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

func (h *JobHandler) addStreamRoutes(rt *route.Router) {
	route.Register(rt, route.Operation{ID: "write-streams", Method: http.MethodPost, Path: "/v1/jobs/{job}/streams", Tag: "workers",
		Summary: "Write values to streams of a job's task",
		Text: "The values are stored when the request is answered, and can be read from any member. Values " +
			"of a full stream are refused one by one; other streams still take theirs. A job that has " +
			"ended, or that another worker has claimed, is a conflict (409)."}, h.writeStreams)
}

type writeStreamsInput struct {
	JobPath
	Body wire.StreamWrites
}

func (h *JobHandler) writeStreams(ctx context.Context, in *writeStreamsInput) (*route.Response[wire.StreamWriteResults], error) {
	task, at, err := ParseJobID(in.Job)
	if err != nil {
		return nil, noJob(in.Job)
	}
	if err := checkWriteSizes(in.Body.Writes); err != nil {
		return nil, err
	}
	if err := h.checkWriter(ctx, task, at, in); err != nil {
		return nil, err
	}
	errs, err := h.appendStreams(ctx, toStreamWrites(task, flow.JobID(task, at), in.Body.Writes))
	if err != nil {
		return nil, err
	}
	answer := wire.StreamWriteResults{Items: make([]wire.StreamWriteResult, len(errs))}
	for i, err := range errs {
		answer.Items[i].Stream = in.Body.Writes[i].Stream
		if err != nil {
			answer.Items[i].Problem = &h.Router.ToProblem(ctx, err).Problem
		}
	}
	return &route.Response[wire.StreamWriteResults]{Body: answer}, nil
}

// maxWriteBytes is the maximum size of the values in one write. It bounds the memory of readers.
const maxWriteBytes = 1 << 20

func checkWriteSizes(writes []wire.StreamWrite) error {
	for i, w := range writes {
		size := 0
		for _, v := range w.Values {
			size += len(v)
		}
		if size > maxWriteBytes {
			return route.NewInvalidError(fmt.Sprintf("body.writes[%d].values", i), "send fewer values at once",
				"the values have %d bytes, more than %d", size, maxWriteBytes)
		}
	}
	return nil
}

// checkWriter returns an error if a job has ended, or another worker has claimed the job.
func (h *JobHandler) checkWriter(ctx context.Context, task string, at flow.Address, in *writeStreamsInput) error {
	v, err := h.Reader.View(ctx, task)
	if err != nil {
		return jobProblem(in.Job, err)
	}
	live := v.State.Live(at)
	if live == nil {
		return &route.LocatedError{Where: "path.job", Hint: "stop the job: its result is not needed any longer",
			Err: flow.Errorf(flow.Conflict, "the job has ended")}
	}
	if live.Token != in.Body.Token {
		return &route.LocatedError{Where: "body.token", Hint: "stop the job: another worker has it, or send the token of its claim",
			Err: flow.Errorf(flow.Conflict, "the job is not claimed with this token")}
	}
	return nil
}

func (h *JobHandler) appendStreams(ctx context.Context, writes []persistence.StreamWrite) ([]error, error) {
	if h.Member.Streams != nil {
		return h.Member.Streams.Append(ctx, writes)
	}
	return h.Store.AppendStreams(ctx, writes, persistence.StreamLimits{}.OrDefault())
}

func toStreamWrites(task, job string, list []wire.StreamWrite) []persistence.StreamWrite {
	writes := make([]persistence.StreamWrite, len(list))
	for i, w := range list {
		writes[i] = persistence.StreamWrite{Task: task, Name: w.Stream, Source: w.Writer, Number: w.Number, At: time.Now().UnixMilli(),
			StreamWriter: persistence.StreamWriter{Job: job, Step: w.Step, Try: w.Try}, Values: w.Values, Ends: w.Ends}
		if !w.At.IsZero() {
			writes[i].At = w.At.UnixMilli()
		}
		for n, v := range w.Values {
			writes[i].Values[n] = api.OrNull(v)
		}
	}
	return writes
}
