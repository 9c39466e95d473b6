// Command agent lets a model choose the next tool. A person decides about the dangerous one.
package main

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/durable"
)

type customerRequest struct{ Text string }
type toolChoice struct{ Tool, Input string }

// model stands for a model, which would get all that was said so far.
var model = []toolChoice{{"find", "ada's order"}, {"refund", "order 7"}, {"answer", "it is on its way"}}

func serveCustomer(f *durable.Flow, r customerRequest) (string, error) {
	for talk := []string{r.Text}; ; talk = append(talk, "done") {
		next, err := durable.Do(f, "choose", func(context.Context) (toolChoice, error) { return model[len(talk)-1], nil })
		if err != nil || next.Tool == "answer" {
			return next.Input, err
		}
		if next.Tool == "refund" {
			if ok, err := durable.Approve(f, "refund", durable.Show("of", next.Input), durable.Within(time.Hour)); !ok {
				return "no", err
			}
		}
		if err := f.Do("use "+next.Tool, func(context.Context) error { fmt.Println(next.Tool, next.Input); return nil }); err != nil {
			return "", err
		}
	}
}

func runAgent(ctx context.Context, store string) error {
	engine, err := troupe.Open(ctx, troupe.Config{Store: store})
	if err != nil {
		return err
	}
	defer engine.Close()
	troupe.HandleFlow(engine, "agent", serveCustomer)
	id, err := engine.Start(ctx, "agent", customerRequest{"Where is my money?"})
	if err != nil {
		return err
	}
	_ = engine.Signal(ctx, id, "refund", "approved") // a person does it in the pages
	result, err := engine.Wait(ctx, id)
	if err == nil {
		fmt.Println(result.Status, string(result.Value))
	}
	return err
}

func main() {
	if err := runAgent(context.Background(), "sqlite:agent.db"); err != nil {
		log.Fatal(err)
	}
}
