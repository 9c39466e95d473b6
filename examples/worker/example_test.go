package main

import (
	"context"
	_ "embed"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/troupe-engine/troupe"
)

//go:embed thumbnails.yaml
var thumbnails []byte

func Example() {
	dir, err := os.MkdirTemp("", "worker-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	if err := thumbnail(context.Background(), "sqlite:"+filepath.Join(dir, "images.db")); err != nil {
		fmt.Println(err)
	}
	// Output:
	// completed: {"width":200,"height":150}
}

// thumbnail runs a member, the worker, and one task.
func thumbnail(ctx context.Context, store string) error {
	engine, err := troupe.Open(ctx, troupe.Config{Store: store})
	if err != nil {
		return err
	}
	defer engine.Close()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan error, 2)
	go func() { ended <- engine.Serve(ctx, listener) }()
	go func() { ended <- newWorker("http://" + listener.Addr().String()).Run(ctx) }()
	defer func() {
		stop()
		<-ended
		<-ended
	}()
	if err := engine.Publish(ctx, "thumbnails", thumbnails); err != nil {
		return err
	}
	id, err := engine.Start(ctx, "thumbnails", map[string]int{"width": 800, "height": 600})
	if err != nil {
		return err
	}
	result, err := engine.Wait(ctx, id)
	if err != nil {
		return err
	}
	fmt.Printf("%s: %s\n", result.Status, result.Value)
	return nil
}
