import { App } from "./app.js";

new App(JSON.parse(document.getElementById("data").textContent)).start();
