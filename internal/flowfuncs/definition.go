package flowfuncs

import (
	"encoding/json"
	"reflect"

	"github.com/troupe-engine/troupe/job"
)

// Definition returns the definition of a function's flow. It declares the inputs of the function's
// type. It returns an error if JSON cannot represent the types.
func Definition[In, Out any](name string) ([]byte, error) {
	schema, err := job.InputSchema(reflect.TypeFor[In]())
	if err == nil {
		err = job.OutputError(reflect.TypeFor[Out]())
	}
	if err != nil {
		return nil, err
	}
	definition := map[string]any{"name": name, "mode": "code", "code": name}
	if schema != nil {
		definition["inputs"] = schema
	}
	return json.Marshal(definition)
}
