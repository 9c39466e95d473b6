package route

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/troupe-engine/troupe/api/printer"
	"github.com/troupe-engine/troupe/internal/payload"
)

// bodyFormat returns the format for bodies. It keeps the values of users unchanged.
func (u userValues) bodyFormat() huma.Format {
	return huma.Format{Marshal: marshalBody, Unmarshal: u.unmarshalFast}
}

func marshalBody(w io.Writer, v any) error {
	err := printer.JSON(w, v, "\n")
	// an error would make the framework panic
	if errors.Is(err, printer.ErrGone) {
		return nil
	}
	// a referenced value was deleted meanwhile, and half an answer must not look complete
	if err != nil && payload.Of(w) != nil {
		panic(http.ErrAbortHandler)
	}
	return err
}

// checkPayloads checks that the referenced values of an answer exist.
func (rt *Router) checkPayloads(answer any) error {
	told := reflect.Indirect(reflect.ValueOf(answer))
	if rt.payloads == nil || told.Kind() != reflect.Struct {
		return nil
	}
	body := told.FieldByName("Body")
	if !body.IsValid() || body.Kind() == reflect.Func {
		return nil
	}
	return printer.Check(body.Interface(), rt.payloads)
}

func unmarshalBody(b []byte, to any) error {
	err := json.Unmarshal(b, to)
	var outOfRange *json.UnmarshalTypeError
	if v, ok := to.(*any); ok && errors.As(err, &outOfRange) {
		return looselyInto(v, b)
	}
	return err
}

// looselyInto decodes a body for the comparison with its schema. Numbers that no float can hold
// become the largest float, because they are valid in values of users.
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
