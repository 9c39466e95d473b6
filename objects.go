package troupe

import (
	"maps"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/carriers/external"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/objects"
	"github.com/troupe-engine/troupe/member/layers"
)

// Bucket holds the files that members exchange with workers that cannot reach a member.
type Bucket = objects.Bucket

// BucketObject is an object of a Bucket.
type BucketObject = objects.Object

// OpenBucket opens the bucket of a URL.
type OpenBucket = objects.Opener

// newChores returns the background deletions: of tried definitions, files and unused values.
func (e *Engine) newChores() []actors.Chore {
	all := []actors.Chore{{Name: "tried definitions", Age: triedFor, Do: e.forgetTried}}
	if e.stores.Files != nil && e.cfg.ObjectStoreRetention != 0 {
		all = append(all, actors.Chore{Name: "files of ended tasks", Age: e.cfg.ObjectStoreRetention, Do: e.stores.Files.Sweep})
	}
	if e.stores.Values != nil {
		all = append(all, actors.Chore{Name: "values that nothing refers to", Age: layers.SweptAfter, Do: e.stores.Values.Sweep})
	}
	return all
}

// newStarters returns the starters of the program and the built-in ones.
func (e *Engine) newStarters() external.Starters {
	all := external.Starters{flow.ObjectStore: e.objects, flow.ChildTask: childTasks{e}}
	maps.Copy(all, e.cfg.Starters)
	return e.services.Starters(all)
}

// newObjects returns the tracker and starter for files of attempts.
func (e *Engine) newObjects() *external.Objects {
	return external.NewObjects(external.ObjectsOptions{Bucket: e.stores.Bucket, Now: e.nowMillis,
		MaxOutput: e.cfg.Limits.OrDefault().Value})
}

// payloadsOf returns the store of large values for the member; nil if there is none.
func (e *Engine) payloadsOf() actors.Payloads {
	if e.stores.Payloads == nil {
		return nil
	}
	return e.stores.Payloads
}
