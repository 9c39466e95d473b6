package job_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/job"
)

type order struct {
	ID    string    `json:"id"`
	Lines []line    `json:"lines"`
	Due   time.Time `json:"due"`
}

type line struct {
	SKU   string `json:"sku"`
	Count int    `json:"count"`
}

func same(_ context.Context, o order) (order, error) { return o, nil }

func TestAFunctionGetsTheInputOfItsNodeOrElseItsParams(t *testing.T) {
	h, err := job.Typed("same", same)
	require.NoError(t, err)
	for name, tt := range map[string]struct{ input, params, want string }{
		"the input":                      {`{"id":"a"}`, `{"id":"b"}`, "a"},
		"params where the input is null": {`null`, `{"id":"b"}`, "b"},
		"params where there is no input": {``, `{"id":"b"}`, "b"},
		"nothing where there is neither": {``, ``, ""},
		"what it does not know is left":  {`{"id":"a","more":[1]}`, ``, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := h(t.Context(), job.Job{Step: "n", Input: json.RawMessage(tt.input), Params: json.RawMessage(tt.params)})
			require.NoError(t, err)
			require.Equal(t, order{ID: tt.want}, out)
		})
	}
}

func TestAnInputThatDoesNotFitIsAFatalErrorThatNamesFunctionNodeAndField(t *testing.T) {
	h, err := job.Typed("reserve", same)
	require.NoError(t, err)
	for name, tt := range map[string]struct{ input, params, want string }{
		"a field": {`{"id":7}`, ``,
			"function reserve, node hold: field id of its input is a number, the function takes " +
				"a text (string)"},
		"a field inside": {`{"lines":[{"count":"two"}]}`, ``,
			"field lines.count of its input is a text, the function takes a whole number (int)"},
		"a number that does not fit": {`{"lines":[{"count":1.5}]}`, ``,
			"field lines.count of its input is the number 1.5, the function takes a whole number (int)"},
		"all of it":                      {`[1]`, ``, "its input is an array, the function takes an object (job_test.order)"},
		"a field with a form of its own": {`{"id":"a","due":"tomorrow"}`, ``, "field due of its input cannot be read: parsing time"},
		"a field of the params": {`null`, `{"lines":true}`,
			"field lines of its params is true or false, the function takes an array ([]job_test.line)"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := h(t.Context(), job.Job{Step: "hold", Input: json.RawMessage(tt.input), Params: json.RawMessage(tt.params)})
			require.ErrorContains(t, err, tt.want)
			require.ErrorContains(t, err, "function reserve, node hold: ")
			require.True(t, job.IsFatal(err))
		})
	}
}

type tree struct {
	Left, Right *tree
	Any         any
	Hidden      chan int `json:"-"`
	private     func()
	When        map[int]time.Time
}

func TestAFunctionThatJSONCannotServeIsRefusedWhenItIsRegistered(t *testing.T) {
	refused := func(h job.Handler, err error) string {
		require.Error(t, err)
		require.Nil(t, h)
		return err.Error()
	}
	in := func(in any) (any, error) { return in, nil }
	_ = tree{private: nil}
	_, err := job.Typed("tree", func(context.Context, tree) (*tree, error) { return nil, nil })
	require.NoError(t, err)
	_, err = job.Typed("any", func(_ context.Context, x any) (any, error) { return in(x) })
	require.NoError(t, err)
	require.Equal(t, "its input cannot be read from JSON: field Notify is a chan int: give it another type, or the tag `json:\"-\"`",
		refused(job.Typed("f", func(context.Context, struct{ Notify chan int }) (int, error) { return 0, nil })))
	require.Equal(t, "its input cannot be read from JSON: field Lines.From is a io.Reader: give it another type, or the tag `json:\"-\"`",
		refused(job.Typed("f", func(context.Context, struct{ Lines []struct{ From io.Reader } }) (int, error) { return 0, nil })))
	require.Equal(t, "its output cannot be written as JSON: it is a func()",
		refused(job.Typed("f", func(context.Context, int) (func(), error) { return nil, nil })))
	require.Equal(t, "its output cannot be written as JSON: it is a map[bool]int",
		refused(job.Typed("f", func(context.Context, int) (map[bool]int, error) { return nil, nil })))
	require.Contains(t, refused(job.Typed("", same)), "needs the name")
	require.Contains(t, refused(job.Typed[int, int]("f", nil)), "no function")
}

func TestAHandlerFindsItsJobInItsContext(t *testing.T) {
	require.Equal(t, job.Job{Log: io.Discard}, job.From(t.Context()))
	job.Progress(t.Context(), "nobody hears it")

	var said []string
	mine := job.Job{ID: "1", Task: "t", Log: io.Discard}
	ctx := job.With(t.Context(), mine, func(_ context.Context, _ job.Job, text string) { said = append(said, text) })
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	require.Equal(t, mine, job.From(ctx))
	job.Progress(ctx, "half of it")
	job.Progress(ctx, "")
	job.Progress(ctx, strings.Repeat("x", 255)+"é")
	require.Equal(t, []string{"half of it", strings.Repeat("x", 255)}, said)
}

func TestTheKeyOfAJobIsWhatTheEngineSends(t *testing.T) {
	require.Equal(t, "k", job.WithKey("k", job.Job{ID: "x"}).Key())
	require.Equal(t, "x", job.Job{ID: "x"}.Key(), "a job that a test makes")
}

func TestAWrappedFatalErrorIsFatal(t *testing.T) {
	require.NoError(t, job.Fatal(nil))
	require.False(t, job.IsFatal(errors.New("x")))
	require.True(t, job.IsFatal(errors.Join(errors.New("y"), job.Fatal(errors.New("x")))))
}

// theirs is an error of another package.
type theirs struct{ details json.RawMessage }

func (theirs) Error() string { return "theirs" }

func (e theirs) Details() json.RawMessage { return e.details }

func TestDetailsAreFoundWhereverTheErrorWasWrapped(t *testing.T) {
	broke := errors.New("it broke")
	require.NoError(t, job.Detailed(nil, 1))
	require.Equal(t, broke, job.Detailed(broke, nil))
	require.Nil(t, job.DetailsOf(broke))
	err := job.Fatal(fmt.Errorf("while trying: %w", job.Detailed(broke, map[string]int{"k": 1})))
	require.Equal(t, `{"k":1}`, string(job.DetailsOf(err)))
	require.True(t, job.IsFatal(err))
	require.ErrorIs(t, err, broke)
	require.Equal(t, `[1]`, string(job.DetailsOf(job.Detailed(broke, json.RawMessage(`[1]`)))))
	require.Equal(t, `"{"`, string(job.DetailsOf(job.Detailed(broke, json.RawMessage(`{`)))), "what is no JSON is told as a text")
	require.Equal(t, `"}{"`, string(job.DetailsOf(theirs{json.RawMessage(`}{`)})), "whoever made the error")
	require.Nil(t, job.DetailsOf(theirs{}))
	require.Nil(t, job.DetailsOf(job.Detailed(broke, json.RawMessage(nil))))
	require.True(t, json.Valid(job.DetailsOf(job.Detailed(broke, make(chan int)))))
}
