"use strict";

const place = document.getElementById("swagger-ui");

function cookie(name) {
  const found = document.cookie.split("; ").find((pair) => pair.startsWith(name + "="));
  return found ? found.slice(name.length + 1) : "";
}

SwaggerUIBundle({
  url: place.dataset.openapi,
  domNode: place,
  deepLinking: true,
  validatorUrl: null,
  presets: [SwaggerUIBundle.presets.apis],
  layout: "BaseLayout",
  // In a session of the console, what is not a mere read carries its CSRF token.
  requestInterceptor(request) {
    const token = cookie(place.dataset.csrfCookie);
    if (token && request.method !== "GET") {
      request.headers["X-CSRFToken"] = token;
    }
    return request;
  },
});
