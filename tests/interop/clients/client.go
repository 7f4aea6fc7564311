// Checks a server with net/http of Go: go run client.go URL AUTHORITY.pem
package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"os"
	"sync"
	"time"
)

var client *http.Client
var url string

func main() {
	url = os.Args[1]
	authority, err := os.ReadFile(os.Args[2])
	if err != nil {
		panic(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	protocols := new(http.Protocols)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	client = &http.Client{Transport: &http.Transport{Protocols: protocols, TLSClientConfig: &tls.Config{RootCAs: pool}}}
	check("get", func() error { return expect("/hello", "hello\n") })
	check("post", func() error { return post(nil) })
	check("trailers", func() error { return post(http.Header{"X-Sum": {"1"}}) })
	check("parallel", parallel)
	check("hints", hints)
	check("events", events)
	check("cancel", cancel)
	check("download", download)
}

func check(name string, call func() error) {
	if err := call(); err != nil {
		fmt.Printf("%s %v\n", name, err)
	} else {
		fmt.Println(name, "ok")
	}
}

func request(ctx context.Context, path string) (*http.Response, error) {
	made, err := http.NewRequestWithContext(ctx, "GET", url+path, nil)
	if err != nil {
		return nil, err
	}
	return send(made)
}

func send(made *http.Request) (*http.Response, error) {
	response, err := client.Do(made)
	if err == nil && (response.StatusCode != 200 || response.ProtoMajor != 2) {
		err = fmt.Errorf("status %d, %s", response.StatusCode, response.Proto)
	}
	return response, err
}

func text(path string) (string, error) {
	return content(request(context.Background(), path))
}

func content(response *http.Response, err error) (string, error) {
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	found, err := io.ReadAll(response.Body)
	return string(found), err
}

func expect(path, expected string) error {
	found, err := text(path)
	if err == nil && found != expected {
		err = fmt.Errorf("got %q", found)
	}
	return err
}

func post(trailers http.Header) error {
	body := bytes.Repeat([]byte("0123456789"), 100_000)
	// Without a length, as a reader of unknown kind.
	made, err := http.NewRequest("POST", url+"/digest", io.MultiReader(bytes.NewReader(body)))
	if err != nil {
		return err
	}
	made.Trailer = trailers
	found, err := content(send(made))
	if expected := fmt.Sprintf("%d %x\n", len(body), sha256.Sum256(body)); err == nil && found != expected {
		err = fmt.Errorf("got %q", found)
	}
	return err
}

func parallel() error {
	var group sync.WaitGroup
	faults := make(chan error, 100)
	for range 100 {
		group.Go(func() {
			if err := expect("/hello", "hello\n"); err != nil {
				faults <- err
			}
		})
	}
	group.Wait()
	close(faults)
	return <-faults
}

func hints() error {
	seen := 0
	trace := &httptrace.ClientTrace{Got1xxResponse: func(code int, fields textproto.MIMEHeader) error {
		if code == 103 && fields.Get("Link") != "" {
			seen++
		}
		return nil
	}}
	response, err := request(httptrace.WithClientTrace(context.Background(), trace), "/hints")
	if err != nil {
		return err
	}
	response.Body.Close()
	if seen != 1 {
		return fmt.Errorf("%d hints", seen)
	}
	return nil
}

func events() error {
	response, err := request(context.Background(), "/events?go"+url)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	reader := bufio.NewReader(response.Body)
	for _, expected := range []string{"data: 1\n", "data: 2\n"} {
		line, err := reader.ReadString('\n')
		if err != nil || line != expected {
			return fmt.Errorf("got %q, %v", line, err)
		}
		if err := expect("/next?go"+url, "hello\n"); err != nil {
			return err
		}
		reader.ReadString('\n')
	}
	return nil
}

func cancel() error {
	ctx, leave := context.WithCancel(context.Background())
	defer leave()
	response, err := request(ctx, "/endless?go"+url)
	if err != nil {
		return err
	}
	if _, err := io.ReadFull(response.Body, make([]byte, 30_000)); err != nil {
		return err
	}
	leave()
	for range 1000 {
		if found, err := text("/left?go" + url); err != nil || found == "yes\n" {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
	return fmt.Errorf("the server goes on")
}

func download() error {
	response, err := request(context.Background(), "/large")
	if err != nil {
		return err
	}
	defer response.Body.Close()
	size, piece := 0, make([]byte, 100_000)
	for {
		length, err := response.Body.Read(piece)
		size += length
		if err == io.EOF {
			break
		} else if err != nil {
			return err
		}
		time.Sleep(2 * time.Millisecond)
	}
	if size != 10_000_000 {
		return fmt.Errorf("%d bytes", size)
	}
	return nil
}
