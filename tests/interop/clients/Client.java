// Checks a server with HttpClient of Java: java Client.java URL AUTHORITY.pem
// Without TLS, HttpClient asks for HTTP/2 by Upgrade only, and goes on in HTTP/1.1.

import java.io.FileInputStream;
import java.io.InputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.security.KeyStore;
import java.security.MessageDigest;
import java.security.cert.CertificateFactory;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.concurrent.CompletableFuture;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

public class Client {
    interface Check { void run() throws Exception; }

    static String url, name;
    static HttpClient client;
    static HttpClient.Version version;

    public static void main(String[] arguments) throws Exception {
        url = arguments[0];
        name = "java" + url;
        boolean secure = url.startsWith("https");
        version = secure ? HttpClient.Version.HTTP_2 : HttpClient.Version.HTTP_1_1;
        var store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null, null);
        try (var file = new FileInputStream(arguments[1])) {
            store.setCertificateEntry("authority", CertificateFactory.getInstance("X.509").generateCertificate(file));
        }
        var trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(store);
        var context = SSLContext.getInstance("TLS");
        context.init(null, trust.getTrustManagers(), null);
        client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_2).sslContext(context).build();
        check("get", () -> same(text("/hello"), "hello\n"));
        check("post", Client::post);
        check("parallel", Client::parallel);
        check("events", Client::events);
        check("cancel", Client::cancel);
        check("download", Client::download);
        System.exit(0);
    }

    static void check(String title, Check call) {
        try {
            call.run();
            System.out.println(title + " ok");
        } catch (Exception error) {
            System.out.println(title + " " + error);
        }
    }

    static void same(Object found, Object expected) {
        if (!found.equals(expected)) throw new IllegalStateException("got " + found);
    }

    static HttpRequest.Builder request(String path) {
        return HttpRequest.newBuilder(URI.create(url + path));
    }

    static <T> T body(HttpResponse<T> response) {
        same(response.statusCode(), 200);
        same(response.version(), version);
        return response.body();
    }

    static String text(String path) throws Exception {
        return body(client.send(request(path).build(), BodyHandlers.ofString()));
    }

    static InputStream stream(String path) throws Exception {
        return body(client.send(request(path).build(), BodyHandlers.ofInputStream()));
    }

    static void post() throws Exception {
        byte[] content = "0123456789".repeat(100_000).getBytes();
        var made = request("/digest").POST(BodyPublishers.ofByteArray(content)).build();
        var digest = HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(content));
        same(body(client.send(made, BodyHandlers.ofString())), content.length + " " + digest + "\n");
    }

    static void parallel() throws Exception {
        var all = new ArrayList<CompletableFuture<HttpResponse<String>>>();
        for (int number = 0; number < 100; number++) {
            all.add(client.sendAsync(request("/hello").build(), BodyHandlers.ofString()));
        }
        for (var each : all) same(body(each.get()), "hello\n");
    }

    static void events() throws Exception {
        try (var events = stream("/events?" + name)) {
            same(new String(events.readNBytes(9)), "data: 1\n\n");
            same(text("/next?" + name), "hello\n");
            same(new String(events.readAllBytes()), "data: 2\n\n");
        }
    }

    static void cancel() throws Exception {
        try (var endless = stream("/endless?" + name)) {
            endless.readNBytes(30_000);
        }
        for (int round = 0; !text("/left?" + name).equals("yes\n"); round++) {
            if (round == 1000) throw new IllegalStateException("the server goes on");
            Thread.sleep(50);
        }
    }

    static void download() throws Exception {
        int size = 0;
        var piece = new byte[100_000];
        try (var large = stream("/large")) {
            for (int length; (length = large.read(piece)) >= 0; size += length) Thread.sleep(2);
        }
        same(size, 10_000_000);
    }
}
