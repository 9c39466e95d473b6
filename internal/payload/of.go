package payload

import (
	"encoding/json"
	"net/http"

	"github.com/troupe-engine/troupe/persistence"
)

// Of returns the payload store of the member that writes a response, or nil if it has none.
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

// Foreign returns the objects of other tasks to which a value of a task refers.
func (s *Store) Foreign(task string, v json.RawMessage) (foreign []persistence.Object) {
	for _, r := range s.Refs(v) {
		if r.Task != task {
			foreign = append(foreign, persistence.Object{Owner: r.Task, Name: r.Name})
		}
	}
	return foreign
}
