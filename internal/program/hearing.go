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

// Prefixes of output lines addressed to Troupe. These lines are logged as well.
var (
	outputMark = []byte("ORK_OUTPUT:")
	errorMark  = []byte("ORK_ERROR:")
	metricMark = []byte("ORK_METRIC:")
)

// outputParser reads a program's output: the lines addressed to Troupe, and the error to report if
// the program fails.
type outputParser struct {
	maxOutput int  // largest size of an output in bytes
	whole     bool // the whole standard output may be the output
	loose     bool // whether a marked line that is not JSON is only logged
	out, err  lineSplitter

	printed       bytes.Buffer // beginning of the standard output
	truncated     bool         // printed is incomplete
	output        json.RawMessage
	marked        bool // whether a line marked an output, even if the output is too large
	tooLarge      bool
	markError     string          // error of the last marked line, if that is not an output
	failure       json.RawMessage // from the last error line
	metrics       metricParser
	lastErrorLine []byte // last line of standard error that is not empty
}

func newOutputParser(most int, of *flow.Program) *outputParser {
	h := &outputParser{maxOutput: most, whole: of.OutputMode != flow.OutputMarker, loose: of.LooseMarks}
	h.out = lineSplitter{line: h.parseOutputLine, limit: h.lineLimit}
	h.err = lineSplitter{line: h.parseErrorLine, limit: func([]byte) int { return maxLast }}
	return h
}

// lineLimit returns how many bytes of a line are kept, by its prefix.
func (h *outputParser) lineLimit(begun []byte) int {
	if bytes.HasPrefix(begun, outputMark) || bytes.HasPrefix(begun, errorMark) {
		return h.maxOutput + len(outputMark) + 2
	}
	if bytes.HasPrefix(begun, metricMark) {
		return maxMetricLine
	}
	return len(outputMark)
}

func (h *outputParser) stdoutWriter() io.Writer {
	return writerFunc(func(b []byte) {
		h.keepPrinted(b)
		h.out.splitLines(b)
	})
}

func (h *outputParser) stderrWriter() io.Writer { return writerFunc(h.err.splitLines) }

// maxLast is the largest number of bytes of a line in an error.
const maxLast = 500

// parseErrorLine handles a line of standard error.
func (h *outputParser) parseErrorLine(line []byte, _ bool) {
	if line = bytes.TrimSpace(line); len(line) > 0 {
		h.lastErrorLine = append(h.lastErrorLine[:0], line...)
	}
}

// keepPrinted keeps standard output that may be the output as a whole.
func (h *outputParser) keepPrinted(b []byte) {
	if !h.whole || h.marked {
		return
	}
	fits := min(len(b), h.maxOutput+1-h.printed.Len())
	h.printed.Write(b[:fits])
	h.truncated = h.truncated || fits < len(b)
}

// parseOutputLine handles a line of standard output.
func (h *outputParser) parseOutputLine(line []byte, cut bool) {
	if text, ok := bytes.CutPrefix(line, outputMark); ok {
		text = toValidUTF8(bytes.TrimSpace(text))
		tooLarge := cut || len(text) > h.maxOutput
		if h.loose && !tooLarge && !json.Valid(text) {
			return
		}
		h.marked, h.tooLarge, h.markError, h.output = true, tooLarge, "", nil
		switch {
		case h.tooLarge:
		case json.Valid(text):
			h.output = bytes.Clone(text)
		default:
			h.markError = notJSON(text)
		}
		return
	}
	if text, ok := bytes.CutPrefix(line, metricMark); ok && !cut {
		h.metrics.parseMetric(toValidUTF8(text))
		return
	}
	if text, ok := bytes.CutPrefix(line, errorMark); ok && !cut {
		if text = toValidUTF8(bytes.TrimSpace(text)); json.Valid(text) && expr.KindOf(text) == expr.KindObject {
			h.failure = bytes.Clone(text)
		}
	}
}

// notJSON returns the error for a marked line that is not JSON: the shortened line and the reason.
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

// runeStart returns the largest offset up to most at which text can be cut without splitting a
// character.
func runeStart(text []byte, most int) int {
	if len(text) <= most {
		return len(text)
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return most
}

// toValidUTF8 replaces invalid UTF-8.
func toValidUTF8(b []byte) []byte {
	if utf8.Valid(b) {
		return b
	}
	return bytes.ToValidUTF8(b, []byte("\uFFFD"))
}

// finishResult returns the result of a program that ended with err.
func (h *outputParser) finishResult(err error) Result {
	h.out.flushLine()
	h.err.flushLine()
	res := h.exitResult(err)
	res.Metrics = h.metrics.List()
	return res
}

func (h *outputParser) exitResult(err error) Result {
	switch {
	case err != nil:
		return h.failedResult(err)
	case h.markError != "":
		return Result{Error: h.markError}
	case h.marked && !h.tooLarge:
		return Result{Output: h.output}
	case h.tooLarge || h.truncated && begunJSON(h.printed.Bytes()):
		return Result{Error: tooLarge(h.maxOutput), Fatal: true}
	case h.truncated || h.marked:
		return Result{}
	}
	if text := bytes.TrimSpace(h.printed.Bytes()); len(text) <= h.maxOutput && utf8.Valid(text) && json.Valid(text) {
		return Result{Output: bytes.Clone(text)}
	}
	return Result{}
}

// failedResult returns the result of a failed program, with the program's own error if it reported
// one.
func (h *outputParser) failedResult(err error) Result {
	var exit exitError
	message, own := expr.String(fieldOf(h.failure, "message"))
	switch {
	// the program was never started, or was canceled
	case !errors.As(err, &exit) || len(h.lastErrorLine) == 0 && !own:
		return Result{Error: err.Error()}
	case own:
		return Result{Error: message, Details: fieldOf(h.failure, "details")}
	}
	return Result{Error: err.Error() + ": " + string(toValidUTF8(h.lastErrorLine))}
}

func fieldOf(object json.RawMessage, name string) json.RawMessage {
	value, _ := expr.Field(object, name)
	return bytes.Clone(value)
}

// begunJSON reports whether a truncated text may be the beginning of a single JSON value.
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
