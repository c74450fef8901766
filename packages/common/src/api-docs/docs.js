// The page at /docs: Swagger UI on the description beside it, dark where the system is.
const dark = matchMedia('(prefers-color-scheme: dark)')
const paint = () => document.documentElement.classList.toggle('dark-mode', dark.matches)
dark.addEventListener('change', paint)
paint()

SwaggerUIBundle({
  dom_id: '#swagger-ui',
  url: document.querySelector('header a').href,
  presets: [SwaggerUIBundle.presets.apis],
  layout: 'BaseLayout',
  docExpansion: 'list',
  deepLinking: true,
  validatorUrl: null,
})
