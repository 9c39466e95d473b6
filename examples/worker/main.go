// Command worker carries out the service "resize" for a member. It polls for jobs, so it works
// behind any firewall. With Push: true in its Config the member would call it instead.
//
//	troupe serve &
//	go run ./examples/worker
//	troupe flow apply examples/worker/thumbnails.yaml
//	troupe task start thumbnails -p width=800 -p height=600 --wait
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/troupe-engine/troupe/worker"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := newWorker(os.Getenv("TROUPE_SERVER")).Run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		os.Exit(1)
	}
}

func newWorker(server string) *worker.Worker {
	w := worker.New(worker.Config{Server: server, Token: os.Getenv("TROUPE_TOKEN"), Pull: true})
	worker.Handle(w, "resize", fitThumbnail)
	return w
}

type imageSize struct {
	Width  int `json:"width"`
	Height int `json:"height"`
}

// fitThumbnail computes the size of a thumbnail. Its output to the job's log is stored.
func fitThumbnail(ctx context.Context, in imageSize) (imageSize, error) {
	if in.Width <= 0 || in.Height <= 0 {
		// retries would not help
		return in, worker.Fatal(errors.New("an image has at least one pixel"))
	}
	const longest = 200
	scale := float64(longest) / float64(max(in.Width, in.Height))
	out := imageSize{Width: int(float64(in.Width) * scale), Height: int(float64(in.Height) * scale)}
	fmt.Fprintf(worker.JobFrom(ctx).Log, "%dx%d becomes %dx%d\n", in.Width, in.Height, out.Width, out.Height)
	return out, nil
}
