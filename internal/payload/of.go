package payload

import (
	"encoding/json"
	"net/http"

	"github.com/troupe-engine/troupe/persistence"
)

// Of finds the store that whoever gets an answer is behind: that of the member which gives it. nil
// = there is none.
func Of(writer any) *Store {
	for {
		if w, ok := writer.(interface{ Payloads() *Store }); ok {
			return w.Payloads()
		}
		w, ok := writer.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return nil
		}
		writer = w.Unwrap()
	}
}

// Foreign lists the objects that a value of a task refers to and that are another one's.
func (s *Store) Foreign(task string, v json.RawMessage) (foreign []persistence.Object) {
	for _, r := range s.Refs(v) {
		if r.Task != task {
			foreign = append(foreign, persistence.Object{Owner: r.Task, Name: r.Name})
		}
	}
	return foreign
}
