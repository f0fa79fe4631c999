package controlplane

import (
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// writeKubeconfig writes a kubeconfig with a single user and everything it needs inline.
func writeKubeconfig(path, server string, ca []byte, user *api.AuthInfo) error {
	const name = "controlplane"
	config := api.NewConfig()
	config.Clusters[name] = &api.Cluster{Server: server, CertificateAuthorityData: ca}
	config.AuthInfos[name] = user
	config.Contexts[name] = &api.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	return clientcmd.WriteToFile(*config, path)
}

func certificateUser(pair keyPair) *api.AuthInfo {
	return &api.AuthInfo{ClientCertificateData: pair.cert, ClientKeyData: pair.key}
}

func tokenUser(token string) *api.AuthInfo {
	return &api.AuthInfo{Token: token}
}
