package main

import (
	"time"

	"github.com/troupe-engine/troupe/definition/define"
	"github.com/troupe-engine/troupe/flow"
)

// parcelFlow is a dag with a unit for each item of an order, at most two at a time. Only expensive
// parcels are insured; every parcel is shipped.
func parcelFlow() *define.Builder {
	b := define.NewDag("parcels").Shape(flow.ShapeDeps)
	pack := b.Fanout("pack", "$run.items").Func("pack").Concurrency(2).Retry(3, 100*time.Millisecond)
	insure := b.Node("insure").Func("insure").After(pack).When("run.value > 100").Skipping(flow.SkipOptional)
	ship := b.Node("ship").Func("ship").After(pack, insure)
	b.Output("result").From(ship.Output("label"))
	return b
}

// bookingFlow is a graph: groups are booked differently from single guests, and a booking is
// canceled if it cannot be paid.
func bookingFlow() *define.Builder {
	b := define.NewGraph("booking").Result("booking").FailFast()
	size := b.Choice("size").Case("group", "params.people > 8").Otherwise("single")
	cancel := b.Node("cancel").Func("cancel").From(define.Subject("output"))
	agent := b.Node("agent").Func("book").Params(map[string]string{"by": "an agent"}).To("booking").Compensate(cancel)
	site := b.Node("site").Func("book").Params(map[string]string{"by": "the site"}).To("booking").Compensate(cancel)
	pay := b.Node("pay").Func("pay").From(define.Param("people"))
	size.On("group", agent).On("single", site)
	agent.Then(pay)
	site.Then(pay)
	return b
}
