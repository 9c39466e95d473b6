package stream

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// ears records the sizes of the batches that it receives.
type ears struct{ bytes, messages []int }

func (e *ears) Open() error       { return nil }
func (e *ears) Note(string) error { return nil }

func (e *ears) Send(list []Message) error {
	size := 0
	for _, m := range list {
		size += len(m.Data)
	}
	e.bytes, e.messages = append(e.bytes, size), append(e.messages, len(list))
	return nil
}

func TestABatchIsGivenOnBeforeItTakesMuchMemory(t *testing.T) {
	heard := &ears{}
	b := Batch{To: heard}
	for _, size := range []int{10, 10, 1 << 20, 40 << 10, 40 << 10, 1} {
		require.NoError(t, b.Add(Message{Data: make(json.RawMessage, size)}))
	}
	require.NoError(t, b.Send())
	require.Equal(t, []int{3, 2, 1}, heard.messages)
	require.Equal(t, []int{20 + 1<<20, 80 << 10, 1}, heard.bytes)
}
