package program

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"unicode/utf8"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/expr"
)

// Lines that begin so are meant for us. They are in the log as well.
var (
	outputMark = []byte("ORK_OUTPUT:")
	errorMark  = []byte("ORK_ERROR:")
	metricMark = []byte("ORK_METRIC:")
)

// hearing is what was heard of a program's words: those meant for us, and what is told if it fails.
type hearing struct {
	most     int  // bytes of an output
	whole    bool // all that it prints may be its output
	loose    bool // a marked line that is no JSON is only logged
	out, err lines

	printed  bytes.Buffer // the beginning of that
	more     bool         // it has printed more
	output   json.RawMessage
	marked   bool // the output, or one that is too large, was marked as that
	tooLarge bool
	broken   string          // what is wrong with the last marked line, which is no output
	failure  json.RawMessage // of the last line that tells one
	metrics  metrics
	last     []byte // line of its standard error that says something
}

func newHearing(most int, of *flow.Program) *hearing {
	h := &hearing{most: most, whole: of.OutputMode != flow.OutputMarker, loose: of.LooseMarks}
	h.out = lines{line: h.told, most: h.mostOf}
	h.err = lines{line: h.complained, most: func([]byte) int { return maxLast }}
	return h
}

// mostOf a line is kept, as far as it is meant for us.
func (h *hearing) mostOf(begun []byte) int {
	if bytes.HasPrefix(begun, outputMark) || bytes.HasPrefix(begun, errorMark) {
		return h.most + len(outputMark) + 2
	}
	if bytes.HasPrefix(begun, metricMark) {
		return maxMetricLine
	}
	return len(outputMark)
}

func (h *hearing) stdout() io.Writer {
	return writer(func(b []byte) {
		h.keep(b)
		h.out.write(b)
	})
}

func (h *hearing) stderr() io.Writer { return writer(h.err.write) }

// maxLast is how many bytes of a line an error holds.
const maxLast = 500

// complained is a line of its standard error.
func (h *hearing) complained(line []byte, _ bool) {
	if line = bytes.TrimSpace(line); len(line) > 0 {
		h.last = append(h.last[:0], line...)
	}
}

// keep keeps what may be the output as a whole.
func (h *hearing) keep(b []byte) {
	if !h.whole || h.marked {
		return
	}
	fits := min(len(b), h.most+1-h.printed.Len())
	h.printed.Write(b[:fits])
	h.more = h.more || fits < len(b)
}

// told is a line of its standard output.
func (h *hearing) told(line []byte, cut bool) {
	if text, ok := bytes.CutPrefix(line, outputMark); ok {
		text = valid(bytes.TrimSpace(text))
		tooLarge := cut || len(text) > h.most
		if h.loose && !tooLarge && !json.Valid(text) {
			return
		}
		h.marked, h.tooLarge, h.broken, h.output = true, tooLarge, "", nil
		switch {
		case h.tooLarge:
		case json.Valid(text):
			h.output = bytes.Clone(text)
		default:
			h.broken = notJSON(text)
		}
		return
	}
	if text, ok := bytes.CutPrefix(line, metricMark); ok && !cut {
		h.metrics.told(valid(text))
		return
	}
	if text, ok := bytes.CutPrefix(line, errorMark); ok && !cut {
		if text = valid(bytes.TrimSpace(text)); json.Valid(text) && expr.KindOf(text) == expr.KindObject {
			h.failure = bytes.Clone(text)
		}
	}
}

// notJSON returns the error of a marked line whose text is no JSON: the line, cut, and why.
func notJSON(text []byte) string {
	why := "it is empty"
	var value json.RawMessage
	if err := json.Unmarshal(text, &value); err != nil && len(text) > 0 {
		why = err.Error()
	}
	if end := runeStart(text, maxLast); end < len(text) {
		text = append(bytes.Clone(text[:end]), "…"...)
	}
	return "the output that the program marked is no JSON (" + why + "): " + string(outputMark) + string(text)
}

// runeStart returns the place at or before most at which a text can be cut.
func runeStart(text []byte, most int) int {
	if len(text) <= most {
		return len(text)
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return most
}

// valid replaces what is no UTF-8.
func valid(b []byte) []byte {
	if utf8.Valid(b) {
		return b
	}
	return bytes.ToValidUTF8(b, []byte("\uFFFD"))
}

// result is what has become of a program that has ended with err.
func (h *hearing) result(err error) Result {
	h.out.end()
	h.err.end()
	res := h.ended(err)
	res.Metrics = h.metrics.List()
	return res
}

func (h *hearing) ended(err error) Result {
	switch {
	case err != nil:
		return h.failed(err)
	case h.broken != "":
		return Result{Error: h.broken}
	case h.marked && !h.tooLarge:
		return Result{Output: h.output}
	case h.tooLarge || h.more && begunJSON(h.printed.Bytes()):
		return Result{Error: tooLarge(h.most), Fatal: true}
	case h.more || h.marked:
		return Result{}
	}
	if text := bytes.TrimSpace(h.printed.Bytes()); len(text) <= h.most && utf8.Valid(text) && json.Valid(text) {
		return Result{Output: bytes.Clone(text)}
	}
	return Result{}
}

// failed says what went wrong: in the program's own words if there are some.
func (h *hearing) failed(err error) Result {
	var exit exitError
	message, own := expr.String(field(h.failure, "message"))
	switch {
	case !errors.As(err, &exit) || len(h.last) == 0 && !own: // it was never started, or not wanted any longer
		return Result{Error: err.Error()}
	case own:
		return Result{Error: message, Details: field(h.failure, "details")}
	}
	return Result{Error: err.Error() + ": " + string(valid(h.last))}
}

func field(object json.RawMessage, name string) json.RawMessage {
	value, _ := expr.Field(object, name)
	return bytes.Clone(value)
}

// begunJSON says whether a text that goes on may be one value of JSON.
func begunJSON(text []byte) bool {
	dec := json.NewDecoder(bytes.NewReader(text))
	for depth, values := 0, 0; ; {
		token, err := dec.Token()
		if err != nil {
			var syntax *json.SyntaxError
			return !errors.As(err, &syntax) && len(bytes.TrimSpace(text)) > 0
		}
		if depth == 0 {
			values++
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if values > 1 {
			return false
		}
	}
}
