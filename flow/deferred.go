package flow

import (
	"encoding/json"

	"github.com/troupe-engine/troupe/flow/expr"
)

// customHTTP is the service of an entry that has a url and no service_type.
const customHTTP = "custom_http"

// deferredIn returns the external jobs that an output names: {"deferred": [{"service_type": …,
// "job_id": …, …}], "data": …}. The result is the later output of the attempt: data, or the whole
// output if there is no data. A list without any object is a plain output.
func deferredIn(output json.RawMessage) (jobs []External, result json.RawMessage, err error) {
	if expr.KindOf(output) != expr.KindObject {
		return nil, output, nil
	}
	list, found := expr.Field(output, "deferred")
	if !found || expr.KindOf(list) != expr.KindArray {
		return nil, output, nil
	}
	entries, _ := expr.Elements(list)
	if !anyObject(entries) {
		return nil, output, nil
	}
	for i, entry := range entries {
		x, err := deferredEntry(i, entry)
		if err != nil {
			return nil, nil, err
		}
		jobs = append(jobs, x)
	}
	if data, found := expr.Field(output, "data"); found {
		return jobs, data, nil
	}
	return jobs, output, nil
}

func anyObject(entries []json.RawMessage) bool {
	for _, entry := range entries {
		if expr.KindOf(entry) == expr.KindObject {
			return true
		}
	}
	return false
}

// deferredEntry decodes an entry of such a list. The tracker gets the whole entry as its data.
func deferredEntry(i int, entry json.RawMessage) (External, error) {
	if expr.KindOf(entry) != expr.KindObject {
		return External{}, Errorf(Invalid, "deferred[%d] is %s: each job outside is an object "+
			"with service_type and job_id", i, expr.KindOf(entry))
	}
	x := External{Service: textField(entry, "service_type"), ID: idField(entry, "job_id"), Data: entry}
	if x.Service == "" && textField(entry, "url") != "" {
		x.Service = customHTTP
	}
	switch {
	case x.Service == "":
		return External{}, Errorf(Invalid, "deferred[%d] has no service_type: say which service the job %.80q is with", i, x.ID)
	case x.ID == "":
		return External{}, Errorf(Invalid, "deferred[%d] has no job_id: say which job of %.80s it is", i, x.Service)
	}
	return x, nil
}

// idField returns a field that is a text, or a number as written.
func idField(obj json.RawMessage, key string) string {
	v, _ := expr.Field(obj, key)
	if expr.KindOf(v) == expr.KindNumber {
		return string(v)
	}
	return textField(obj, key)
}
