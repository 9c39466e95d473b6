package troupe

import (
	"context"
	"maps"

	"github.com/troupe-engine/troupe/actors/external"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/objects"
)

// Bucket keeps the files by which workers report that know nothing else of a member.
type Bucket = objects.Bucket

// BucketObject is one of the objects of a Bucket.
type BucketObject = objects.Object

// OpenBucket opens the bucket that a URL names.
type OpenBucket = objects.Opener

// openObjects opens the object store of a member, if it has one.
func (c *Config) openObjects(ctx context.Context) (objects.Bucket, error) {
	if c.ObjectStore == "" {
		return nil, nil
	}
	return objects.Open(ctx, c.ObjectStore, c.Buckets)
}

// starters are the program's, and those that come with every member.
func (e *Engine) starters() external.Starters {
	all := external.Starters{flow.ObjectStore: e.objects}
	maps.Copy(all, e.cfg.Starters)
	return all
}

// newObjects looks after the files of attempts, in a bucket or in none.
func (e *Engine) newObjects(bucket objects.Bucket) *external.Objects {
	return external.NewObjects(external.ObjectsOptions{Bucket: bucket, Now: e.now, MaxOutput: e.cfg.Limits.OrDefault().Value})
}
