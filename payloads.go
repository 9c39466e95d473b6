package troupe

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/internal/objects"
	"github.com/troupe-engine/troupe/internal/payload"
	"github.com/troupe-engine/troupe/persistence"
)

// payloadOver is the default size in bytes above which values go to the payload store, if there is
// one.
const payloadOver = 64 << 10

// unheldAge is the minimal age of an object that is deleted because nothing refers to it: the
// member that wrote it may be about to store a reference.
var unheldAge = time.Hour

// sweptAfter is the minimal age of an object that the sweep deletes. The sweep also covers objects
// of tasks that never started.
const sweptAfter = 10 * time.Hour

// openPayloads opens the bucket for large values, if one is configured.
func (c *Config) openPayloads(ctx context.Context) (objects.Bucket, error) {
	switch {
	case c.PayloadOver < 0:
		return nil, errors.New("values cannot be larger than less than nothing (--payload-over)")
	case c.PayloadStore == "" && c.PayloadOver > 0:
		return nil, errors.New("there is nowhere to keep values of more bytes (--payload-over): say where with --payload-store")
	case c.PayloadStore == "":
		return nil, nil
	}
	bucket, err := objects.Open(ctx, c.PayloadStore, c.Buckets)
	if err != nil {
		return nil, fmt.Errorf("--payload-store: %w", err)
	}
	return bucket, nil
}

// newPayloads returns a payload store that keeps large values of the store's tasks in a bucket.
func newPayloads(ctx context.Context, cfg *Config, bucket objects.Bucket, store persistence.Store) (*payload.Store, error) {
	secret, err := store.Secret(ctx)
	if err != nil {
		return nil, fmt.Errorf("the secret of the store: %w", err)
	}
	over := cfg.PayloadOver
	if over == 0 {
		over = payloadOver
	}
	values := payload.New(payload.Options{Bucket: bucket, Secret: secret, Over: over, Most: cfg.Limits.OrDefault().Shared})
	return values, checkPayloadPlace(ctx, cfg, values, store)
}

// settleFor is how long a starting member waits for the bucket of the store's values. If the bucket
// does not answer, the member starts anyway, because much works without it.
var settleFor = 5 * time.Second

// checkPayloadPlace checks that the configured bucket is the one that the store's tasks refer to.
func checkPayloadPlace(ctx context.Context, cfg *Config, values *payload.Store, store persistence.Store) error {
	at := cfg.valuesAt()
	noted, err := store.ValuesAt(ctx)
	if err != nil {
		return fmt.Errorf("--payload-store: %w", err)
	}
	if noted == at {
		var cancel func()
		ctx, cancel = context.WithTimeout(ctx, settleFor)
		defer cancel()
	}
	err = values.Settle(ctx, at, noted)
	switch {
	case err != nil && noted == at && errors.Is(err, payload.ErrAway):
		cfg.Logger.Warn("the place of large values does not answer: what needs one of them waits", "error", err)
	case err != nil:
		return fmt.Errorf("--payload-store: %w", err)
	}
	return nil
}

// valuesAt returns the place of large values, for display; "" = the store itself.
func (c *Config) valuesAt() string {
	if c.PayloadStore == "" {
		return ""
	}
	return objects.Shown(c.PayloadStore)
}

// payloadsOf returns the store of large values for the member; nil if there is none.
func (e *Engine) payloadsOf() actors.Payloads {
	if e.payloads == nil {
		return nil
	}
	return e.payloads
}

// withPayloads is a store that also deletes the bucket values of deleted tasks. It deletes the
// tasks first, so that nothing can refer to their values afterwards. If it is interrupted then, the
// sweep deletes the rest.
type withPayloads struct {
	persistence.Store
	bucket objects.Bucket
	log    *slog.Logger
}

func (s withPayloads) DeleteEnded(ctx context.Context, before int64, limit int) (int, error) {
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

func (s withPayloads) DeleteFlow(ctx context.Context, id string, limit int) (int, error) {
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

// tidySoon deletes values that the sweep would otherwise find later.
func (s withPayloads) tidySoon(ctx context.Context, owner string) {
	if err := s.deleteUnheld(ctx, owner, time.Now().Add(-unheldAge)); err != nil && ctx.Err() == nil {
		s.log.Warn("values of a deleted task stay until the next sweep", "values", s.bucket.Address(payload.Folder(owner)), "error", err)
	}
}

// deleteUnheld deletes the values of a deleted task that were written before a time, except those
// that other tasks hold.
func (s withPayloads) deleteUnheld(ctx context.Context, owner string, before time.Time) error {
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

// tidyBucket is a bucket in which a crash may leave more than objects.
type tidyBucket interface {
	Tidy(ctx context.Context, prefix string, before time.Time) error
}

// removedAtOnce is how many objects are deleted in parallel.
const removedAtOnce = 16

func (s withPayloads) removeObjects(ctx context.Context, list []objects.Object) error {
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

// sweptTogether is how many holds are dropped, and how many folders checked, at once.
const sweptTogether = 1000

// sweepValues deletes values that were written before a time and that nothing refers to: those of
// tasks that are gone or never started, unless another task holds them.
func (s withPayloads) sweepValues(ctx context.Context, before int64) (more bool, err error) {
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
