-- Needs 'exrc', and trust: see :help exrc. Debuggers need the plug-in nvim-dap.
local project = vim.json.decode([=[
@PROJECT@
]=])
local group = vim.api.nvim_create_augroup("tritonsmith", {})
vim.filetype.add({ extension = { mlir = "mlir", td = "tablegen" } })
for filetype, command in pairs(project.servers) do
  vim.api.nvim_create_autocmd("FileType", {
    group = group,
    pattern = filetype,
    callback = function()
      vim.lsp.start({ name = vim.fn.fnamemodify(command[1], ":t"), cmd = command, root_dir = project.root })
    end,
  })
end
vim.api.nvim_create_user_command("Tritonsmith", function(given)
  local file = vim.fn.expand("%:p")
  local command = vim.tbl_map(function(word)
    return word == "{file}" and file or word
  end, project.tasks[given.args])
  vim.cmd("botright new")
  vim.fn.termopen(command, { cwd = project.root, env = project.environ })
end, {
  nargs = 1,
  complete = function()
    return vim.tbl_keys(project.tasks)
  end,
})
local found, dap = pcall(require, "dap")
if found then
  for name, command in pairs(project.adapters) do
    dap.adapters[name] = { type = "executable", command = command[1], args = vim.list_slice(command, 2) }
  end
  for _, launch in ipairs(project.launches) do
    local known = dap.configurations[launch.filetype] or {}
    known = vim.tbl_filter(function(one)
      return one.name ~= launch.name
    end, known)
    dap.configurations[launch.filetype] = vim.list_extend(known, { launch })
  end
end
