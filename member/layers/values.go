package layers

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/troupe-engine/troupe/internal/objects"
	"github.com/troupe-engine/troupe/internal/payload"
	"github.com/troupe-engine/troupe/persistence"
)

// payloadOver is the default size in bytes above which values go to the payload store. It applies
// only if a payload store is configured.
const payloadOver = 64 << 10

// SweptAfter is the minimum age of an object that the sweep deletes. The sweep also deletes objects
// of tasks that never started.
const SweptAfter = 10 * time.Hour

// openPayloads opens the bucket for large values, if one is configured.
func (o *Options) openPayloads(ctx context.Context) (objects.Bucket, error) {
	switch {
	case o.PayloadThreshold < 0:
		return nil, errors.New("--payload-threshold must not be negative")
	case o.PayloadStore == "" && o.PayloadThreshold > 0:
		return nil, errors.New("--payload-threshold needs a store for large values: set --payload-store")
	case o.PayloadStore == "":
		return nil, nil
	}
	bucket, err := objects.Open(ctx, o.PayloadStore, o.Buckets)
	if err != nil {
		return nil, fmt.Errorf("--payload-store: %w", err)
	}
	return bucket, nil
}

// newPayloads returns a payload store that holds large values of the store's tasks in a bucket.
func newPayloads(ctx context.Context, o *Options, bucket objects.Bucket, store persistence.Store) (*payload.Store, error) {
	secret, err := store.Secret(ctx)
	if err != nil {
		return nil, fmt.Errorf("the secret of the store: %w", err)
	}
	over := o.PayloadThreshold
	if over == 0 {
		over = payloadOver
	}
	values := payload.New(payload.Options{Bucket: bucket, Secret: secret, Over: over, Most: o.Limits.OrDefault().Shared})
	return values, checkPayloadPlace(ctx, o, values, store)
}

// checkPayloadPlace returns an error if the store's tasks refer to another bucket than the
// configured one.
func checkPayloadPlace(ctx context.Context, o *Options, values *payload.Store, store persistence.Store) error {
	at := o.valuesAt()
	noted, err := store.ValuesAt(ctx)
	if err != nil {
		return fmt.Errorf("--payload-store: %w", err)
	}
	if noted == at {
		var cancel func()
		ctx, cancel = context.WithTimeout(ctx, o.Times.Settle)
		defer cancel()
	}
	err = values.Settle(ctx, at, noted)
	switch {
	case err != nil && noted == at && errors.Is(err, payload.ErrAway):
		o.Logger.Warn("object store of large values is unavailable: tasks that need one of them wait", "error", err)
	case err != nil:
		return fmt.Errorf("--payload-store: %w", err)
	}
	return nil
}

// valuesAt returns the place of large values, for display. It returns "" if they are in the
// database.
func (o *Options) valuesAt() string {
	if o.PayloadStore == "" {
		return ""
	}
	return objects.Shown(o.PayloadStore)
}

// Values is a layer of the store that also deletes the large values of deleted tasks from a bucket.
// It deletes the tasks first, so that nothing can refer to their values afterwards. If it is
// interrupted between the two, the sweep deletes the rest.
type Values struct {
	persistence.Store
	bucket    objects.Bucket
	log       *slog.Logger
	unheldAge time.Duration
}

// DeleteEnded deletes ended tasks, and then their values.
func (s Values) DeleteEnded(ctx context.Context, before int64, limit int) (int, error) {
	ends, err := s.EndedBetween(ctx, 0, before, limit)
	if err != nil {
		return 0, err
	}
	n, err := s.Store.DeleteEnded(ctx, before, limit)
	if err == nil {
		for _, end := range ends {
			s.tidySoon(ctx, end.ID)
		}
	}
	return n, err
}

// DeleteFlow deletes tasks of a flow, and then their values.
func (s Values) DeleteFlow(ctx context.Context, id string, limit int) (int, error) {
	tasks, err := s.ListTasks(ctx, persistence.TaskFilter{FlowID: id, Limit: limit})
	if err != nil {
		return 0, err
	}
	n, err := s.Store.DeleteFlow(ctx, id, limit)
	if err == nil {
		for i := range tasks {
			s.tidySoon(ctx, tasks[i].ID)
		}
	}
	return n, err
}

// tidySoon deletes the values of a task now, so that the sweep need not find them later. A failure
// is only logged.
func (s Values) tidySoon(ctx context.Context, owner string) {
	if err := s.deleteUnheld(ctx, owner, time.Now().Add(-s.unheldAge)); err != nil && ctx.Err() == nil {
		s.log.Warn("deleting the large values of a task failed; the next sweep retries it", "values", s.bucket.Address(payload.Folder(owner)), "error", err)
	}
}

// deleteUnheld deletes the values of a deleted task that were written before a time. Values that
// other tasks hold stay.
func (s Values) deleteUnheld(ctx context.Context, owner string, before time.Time) error {
	gone, err := s.Gone(ctx, []string{owner})
	if err != nil || len(gone) == 0 {
		return err
	}
	held, err := s.Held(ctx, owner)
	if err != nil {
		return err
	}
	list, err := s.bucket.List(ctx, payload.Folder(owner))
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(o objects.Object) bool {
		_, kept := slices.BinarySearch(held, o.Key[len(payload.Folder(owner)):])
		return kept || !o.Written.Before(before)
	})
	if err := s.removeObjects(ctx, list); err != nil {
		return err
	}
	if folder, ok := s.bucket.(tidyBucket); ok {
		return folder.Tidy(ctx, payload.Folder(owner), before)
	}
	return nil
}

// tidyBucket is a bucket in which a crash may leave data other than objects. Tidy removes that
// data.
type tidyBucket interface {
	Tidy(ctx context.Context, prefix string, before time.Time) error
}

// removedAtOnce is the number of objects that are deleted in parallel.
const removedAtOnce = 16

func (s Values) removeObjects(ctx context.Context, list []objects.Object) error {
	var all sync.WaitGroup
	errs, places := make([]error, len(list)), make(chan struct{}, removedAtOnce)
	for i, o := range list {
		places <- struct{}{}
		all.Go(func() {
			errs[i] = s.bucket.Remove(ctx, o.Key)
			<-places
		})
	}
	all.Wait()
	return errors.Join(slices.DeleteFunc(errs, func(err error) bool { return errors.Is(err, fs.ErrNotExist) })...)
}

// sweptTogether is the number of holds that are dropped, and of folders that are checked, at once.
const sweptTogether = 1000

// Sweep deletes values that were written before a time and that nothing refers to. These are values
// of deleted tasks, or of tasks that never started, unless another task holds them.
func (s Values) Sweep(ctx context.Context, before int64) (more bool, err error) {
	for more := true; more; {
		owners, err := s.DropHolds(ctx, before, sweptTogether)
		if err != nil {
			return false, err
		}
		more = len(owners) == sweptTogether
	}
	folders, err := s.bucket.Folders(ctx, payload.Folders)
	if err != nil {
		return false, err
	}
	for some := range slices.Chunk(folders, sweptTogether) {
		gone, err := s.Gone(ctx, some)
		if err != nil {
			return false, err
		}
		for _, owner := range gone {
			if err := s.deleteUnheld(ctx, owner, time.UnixMilli(before)); err != nil {
				return false, err
			}
		}
	}
	return false, nil
}
