package awstest

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
)

// readAll reads the body of a call, which CloudWatch clients compress.
func readAll(r *http.Request) ([]byte, error) {
	if r.Header.Get("Content-Encoding") != "gzip" {
		return io.ReadAll(r.Body)
	}
	unzipped, err := gzip.NewReader(r.Body)
	if err != nil {
		return nil, err
	}
	r.Header.Del("Content-Encoding")
	return io.ReadAll(unzipped)
}

// backend is one account of a moto server.
type backend struct {
	moto    *Moto
	account string
	client  *http.Client

	dynamoDB sync.Mutex // moto checks the condition of a write and then writes: concurrent writes could both succeed
}

// pass passes a call on to moto unchanged.
func (b *backend) pass(r *http.Request, call *Call) *answer {
	if call.Service == DynamoDB {
		b.dynamoDB.Lock()
		defer b.dynamoDB.Unlock()
	}
	target := "http://" + b.moto.address + r.URL.RequestURI()
	request, err := http.NewRequestWithContext(r.Context(), r.Method, target, bytes.NewReader(call.Body))
	if err != nil {
		return unreachable(call, err)
	}
	request.Header = r.Header.Clone()
	request.Header.Del("Connection")
	return b.send(call, request)
}

// query makes a call of the query protocol to moto.
func (b *backend) query(ctx context.Context, call *Call, service string, params url.Values) *answer {
	body := strings.NewReader(params.Encode())
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+b.moto.address+"/", body)
	if err != nil {
		return unreachable(call, err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	// moto reads the region and the service from this header, and checks no signature.
	request.Header.Set("Authorization", fmt.Sprintf(
		"AWS4-HMAC-SHA256 Credential=test/20260101/%s/%s/aws4_request, SignedHeaders=host, Signature=none",
		call.Region, service))
	return b.send(call, request)
}

func (b *backend) send(call *Call, request *http.Request) *answer {
	request.Header.Set(accountHeader, b.account)
	response, err := b.client.Do(request)
	if err != nil {
		return unreachable(call, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return unreachable(call, err)
	}
	return &answer{response.StatusCode, response.Header.Get("Content-Type"), body}
}

// unreachable returns the error of a call that moto does not answer.
func unreachable(call *Call, err error) *answer {
	return failure(call, http.StatusBadGateway, "", strings.NewReplacer("<", "", "&", "").Replace(err.Error()))
}
