package troupe_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/jackc/pgx/v5"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/definition/define"
)

// A function takes the output of the node before it, and selects the next node by a field of its
// output.
func ExampleHandle() {
	type parcel struct {
		Weight int    `json:"weight"`
		By     string `json:"by,omitempty"`
	}
	ctx := context.Background()
	store, err := os.MkdirTemp("", "example-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(store)
	engine, err := troupe.Open(ctx, troupe.Config{Store: "sqlite:" + filepath.Join(store, "parcels.db")})
	if err != nil {
		panic(err)
	}
	defer engine.Close()
	troupe.Handle(engine, "weigh", func(_ context.Context, p parcel) (parcel, error) {
		if p.By = "bike"; p.Weight > 20 {
			p.By = "truck"
		}
		return p, nil
	})
	troupe.Handle(engine, "send", func(ctx context.Context, p parcel) (string, error) {
		return fmt.Sprintf("%s: %d kg by %s", troupe.JobFrom(ctx).Step, p.Weight, p.By), nil
	})

	b := define.NewGraph("parcels").Result("sent")
	weigh := b.Node("weigh").Func("weigh").ActionFrom("by")
	ride := b.Node("ride").Func("send").From(weigh.Output()).To("sent")
	drive := b.Node("drive").Func("send").From(weigh.Output()).To("sent")
	weigh.On("bike", ride).On("truck", drive)
	if err := engine.PublishFlow(ctx, b); err != nil {
		panic(err)
	}
	for _, weight := range []int{3, 300} {
		id, err := engine.Start(ctx, "parcels", parcel{Weight: weight})
		if err != nil {
			panic(err)
		}
		result, err := engine.Wait(ctx, id)
		if err != nil {
			panic(err)
		}
		fmt.Println(result.Status, string(result.Value))
	}
	// Output:
	// completed "ride: 3 kg by bike"
	// completed "drive: 300 kg by truck"
}

// An order and the task for it are stored together or not at all.
func ExampleEngine_StartTx() {
	place := func(ctx context.Context, engine *troupe.Engine, conn *pgx.Conn, order string) error {
		return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, "INSERT INTO orders (id) VALUES ($1)", order); err != nil {
				return err
			}
			_, err := engine.StartTx(ctx, tx, "order", map[string]string{"id": order}, troupe.WithKey(order))
			return err
		})
	}
	_ = place
}

// Programs can distinguish errors that need different reactions.
func ExampleEngine_Signal() {
	approve := func(ctx context.Context, engine *troupe.Engine, task string) error {
		err := engine.Signal(ctx, task, "approved", true)
		if errors.Is(err, troupe.ErrNotFound) {
			return fmt.Errorf("nobody ordered that: %w", err)
		}
		return err
	}
	_ = approve
}
