package v1

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/troupe-engine/troupe/api/internal/printer"
	"github.com/troupe-engine/troupe/internal/payload"
)

// bodyFormat is how bodies are read and written: values of users pass through it untouched.
func (u userValues) bodyFormat() huma.Format {
	return huma.Format{Marshal: marshalBody, Unmarshal: u.unmarshalFast}
}

func marshalBody(w io.Writer, v any) error {
	err := printer.JSON(w, v, "\n")
	if errors.Is(err, printer.ErrGone) { // told, the framework would panic, and nobody is left to hear of it
		return nil
	}
	if err != nil && payload.Of(w) != nil { // what a value refers to has just gone; half an answer must not look like a whole one
		panic(http.ErrAbortHandler)
	}
	return err
}

// checkPayloads finds out whether what the values in an answer refer to is there.
func (s *service) checkPayloads(answer any) error {
	told := reflect.Indirect(reflect.ValueOf(answer))
	if s.Payloads == nil || told.Kind() != reflect.Struct {
		return nil
	}
	body := told.FieldByName("Body")
	if !body.IsValid() || body.Kind() == reflect.Func {
		return nil
	}
	return printer.Check(body.Interface(), s.Payloads)
}

func unmarshalBody(b []byte, to any) error {
	err := json.Unmarshal(b, to)
	var outOfRange *json.UnmarshalTypeError
	if v, ok := to.(*any); ok && errors.As(err, &outOfRange) {
		return looselyInto(v, b)
	}
	return err
}

// looselyInto decodes what the framework compares with its description. JSON knows numbers that no
// float does; as the values of users they are fine, so here the largest float stands for them.
func looselyInto(to *any, b []byte) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	if err := dec.Decode(to); err != nil {
		return err
	}
	*to = toFloats(*to)
	return nil
}

func toFloats(v any) any {
	switch v := v.(type) {
	case json.Number:
		f, err := v.Float64()
		if err != nil {
			f = math.Copysign(math.MaxFloat64, f)
		}
		return f
	case []any:
		for i := range v {
			v[i] = toFloats(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = toFloats(v[k])
		}
	}
	return v
}
