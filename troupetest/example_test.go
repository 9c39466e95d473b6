package troupetest_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/troupe-engine/troupe/troupetest"
)

func Example() {
	t := &testing.T{} // from your test
	f := troupetest.New(t, `
start: wait
nodes:
  wait: {kind: timer, params: {delay_ms: 1814400000}}
  charge: {service: charge, retry: {max_attempts: 4, delay: 1h}, post: {output_key: payment}}
edges: [{from: wait, action: default, to: charge}]`)
	f.Mock("charge", troupetest.Fails("declined").Times(2).Then(troupetest.Returns("p1")))
	r := f.Run(nil)
	fmt.Println(r.State, string(r.Value), "after", r.Took)
	fmt.Print(r.Text())
	// Output:
	// completed {"payment":"p1"} after 506h0m0s
	//           0s  the task starts with {}
	//           0s  wait begins
	//          21d  wait is completed → charge
	//          21d  charge begins
	//          21d  charge: charge is called with null
	//          21d  charge: the attempt fails: declined: it is tried again 1h later
	//        21d1h  charge attempt 2: charge is called with null
	//        21d1h  charge attempt 2: the attempt fails: declined: it is tried again 1h later
	//        21d2h  charge attempt 3: charge is called with null
	//        21d2h  charge attempt 3: the attempt gives "p1"
	//        21d2h  charge is completed
	//        21d2h  the task is completed
}

func ExampleTest_Seeds() {
	t := &testing.T{} // from your test
	f := troupetest.New(t, `
nodes:
  pay: {service: pay, compensate: refund}
  ship: {service: ship, depends_on: [pay]}
  refund: {service: refund}`)
	for _, name := range []string{"pay", "ship", "refund"} {
		f.Mock(name, troupetest.Returns("done"))
	}
	f.MayFail("pay", "ship").Seeds(200, nil, func(r *troupetest.Result) error {
		if r.State != "completed" && r.Called("pay") && !r.Called("refund") {
			return errors.New("the money is gone")
		}
		return nil
	})
	fmt.Println("nobody ever pays for nothing")
	// Output: nobody ever pays for nothing
}
