// Command agent lets a model choose tools, asks a person about one, and streams its steps.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/durable"
)

type toolCall struct{ Tool, Text string }

// model stands for a model, which would get all that was said so far.
var model = []toolCall{{"find", "ada's order"}, {"refund", "order 7"}, {"say", "it is"}, {"say", "on its way"}, {"end", ""}}

func serveCustomer(f *durable.Flow, request toolCall) (string, error) {
	for talk := []toolCall{request}; ; talk = append(talk, request) {
		next, err := durable.Do(f, "choose", func(context.Context) (toolCall, error) { return model[len(talk)-1], nil })
		if err != nil || next.Tool == "end" {
			return "answered", err
		}
		if next.Tool == "refund" {
			if ok, err := durable.Approve(f, "refund", durable.Show("of", next.Text)); !ok {
				return "refused", err
			}
		}
		if err := f.Do("use "+next.Tool, func(ctx context.Context) error { return troupe.Stream(ctx, "answer").Write(next) }); err != nil {
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
	id, err := engine.Start(ctx, "agent", toolCall{Text: "Where is my money?"})
	if err != nil {
		return err
	}
	_ = engine.Signal(ctx, id, "refund", "approved") // a person does it in the pages
	for said, err := range engine.FollowStream(ctx, id, "answer", 0) {
		if err != nil {
			return err
		}
		fmt.Println(string(said.Value))
	}
	return nil
}

func main() {
	if err := runAgent(context.Background(), "sqlite:agent.db"); err != nil {
		log.Fatal(err)
	}
}
