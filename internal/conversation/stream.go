package conversation

import (
	"hash/fnv"
	"io"
	"strconv"

	"github.com/troupe-engine/troupe/job"
)

// branchOutput is the state of the streams of a branch. The mutex of the conversation guards it.
type branchOutput struct {
	written map[string]int64 // number of values written between steps, by stream
	step    string           // step that the branch carries out; "" between steps
	try     int
}

// noteTry records the try of a step that begins; nil means that the step has ended.
func (b *Branch) noteTry(s *Step) {
	b.c.mu.Lock()
	defer b.c.mu.Unlock()
	b.output.step, b.output.try = "", 0
	if s != nil {
		b.output.step, b.output.try = s.Place(), s.Tries
	}
}

// WriteValue writes a value to a stream of the task, for the current step of the branch. Values
// between steps are numbered, so that a repeated function writes no value twice.
func (b *Branch) WriteValue(v job.StreamValue) error {
	b.c.mu.Lock()
	to := b.c.job.Streams()
	between := b.output.step == ""
	v.Step, v.Try = b.output.step, b.output.try
	if between {
		v.Source, v.Number = b.streamSource(), b.countValue(&v)
	}
	skips := between && (b.IsReplaying() || b.c.undoes || b.spent)
	b.c.mu.Unlock()
	if to == nil || skips {
		return nil
	}
	return to.WriteValue(v)
}

// countValue returns the number of a value that is written between steps. The caller holds the
// mutex.
func (b *Branch) countValue(v *job.StreamValue) int64 {
	if b.output.written == nil {
		b.output.written = map[string]int64{}
	}
	if len(v.Value) > 0 {
		b.output.written[v.Stream]++
	}
	return b.output.written[v.Stream]
}

// streamSource returns the source of the values that the branch writes between its steps. The
// source is equal in every replay.
func (b *Branch) streamSource() string {
	h := fnv.New64a()
	_, _ = io.WriteString(h, b.Key()) // a hash never fails
	return "flow-" + strconv.FormatUint(h.Sum64(), 16)
}
